package interpolate_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/berth-dev/berth/pkg/interpolate"
)

// TestGeneratedReferencesCoverWhatIsRead holds the same as FuzzReferences for
// templates that are made to be valid, with values on winding ways.
func TestGeneratedReferencesCoverWhatIsRead(t *testing.T) {
	t.Parallel()
	rendered := 0
	for seed := range uint64(1500) {
		src := generate(rand.NewPCG(seed, 1))
		if _, err := interpolate.RenderAlways(src, exampleState(t), quick()); err == nil {
			checkReferences(t, src)
			rendered++
		}
	}
	if rendered < 50 {
		t.Errorf("only %d of the generated templates render: the test says too little", rendered)
	}
}

// FuzzGeneratedReferences is the same without an end.
func FuzzGeneratedReferences(f *testing.F) {
	f.Add(uint64(1), uint64(2))
	f.Fuzz(func(t *testing.T, a, b uint64) { checkReferences(t, generate(rand.NewPCG(a, b))) })
}

// generator writes a template: statements with expressions over the tree.
type generator struct {
	*rand.Rand
	b         strings.Builder
	vars      []string
	templates int
	depth     int
}

func generate(source rand.Source) string {
	g := &generator{Rand: rand.New(source)}
	for i := range g.IntN(3) {
		fmt.Fprintf(&g.b, `{{ define "t%d" }}`, i)
		g.vars, g.depth = nil, 1
		g.statements()
		g.b.WriteString(`{{ end }}`)
		g.templates = i + 1
	}
	g.vars, g.depth = nil, 0
	for range 1 + g.IntN(3) {
		g.statements()
	}
	return g.b.String()
}

func (g *generator) pick(choices ...string) string { return choices[g.IntN(len(choices))] }

func (g *generator) statements() {
	for range 1 + g.IntN(2) {
		g.statement()
	}
}

func (g *generator) statement() {
	choice := g.IntN(9)
	if g.depth > 2 {
		choice = g.IntN(3)
	}
	switch choice {
	case 0, 1:
		fmt.Fprintf(&g.b, "{{ %s }}", g.expression(3))
	case 2:
		v := fmt.Sprintf("$v%d", len(g.vars))
		if len(g.vars) > 0 && g.IntN(2) == 0 {
			fmt.Fprintf(&g.b, "{{ %s = %s }}", g.pick(g.vars...), g.expression(3))
			return
		}
		fmt.Fprintf(&g.b, "{{ %s := %s }}", v, g.expression(3))
		g.vars = append(g.vars, v)
	case 3:
		fmt.Fprintf(&g.b, "{{ if %s }}", g.expression(2))
		g.block()
	case 4:
		fmt.Fprintf(&g.b, "{{ with %s }}", g.expression(2))
		g.block()
	case 5:
		v := fmt.Sprintf("$v%d", len(g.vars))
		fmt.Fprintf(&g.b, "{{ with %s := %s }}", v, g.expression(2))
		before := g.vars
		g.vars = append(g.vars, v)
		g.block()
		g.vars = before
	case 6:
		fmt.Fprintf(&g.b, "{{ range %s }}", g.list())
		g.block()
	case 7:
		k, v := fmt.Sprintf("$v%d", len(g.vars)), fmt.Sprintf("$v%d", len(g.vars)+1)
		fmt.Fprintf(&g.b, "{{ range %s, %s := %s }}", k, v, g.list())
		before := g.vars
		g.vars = append(g.vars, k, v)
		g.block()
		g.vars = before
	case 8:
		if g.templates > 0 {
			fmt.Fprintf(&g.b, `{{ template "t%d" %s }}`, g.IntN(g.templates), g.expression(2))
		}
	}
}

func (g *generator) block() {
	before := len(g.vars)
	g.depth++
	g.statements()
	g.vars = g.vars[:before]
	if g.IntN(3) == 0 {
		g.b.WriteString("{{ else }}")
		g.statements()
		g.vars = g.vars[:before]
	}
	g.depth--
	g.b.WriteString("{{ end }}")
}

func (g *generator) list() string {
	return g.pick("$.nuon.components", "$.nuon.components.api.outputs.zones", "list "+g.expression(1)+" "+g.expression(1),
		"list "+g.name()+" "+g.name(), "(values $.nuon.components)", "(pluck \"name\" $.nuon $.nuon.org)", "$.nuon.install", g.expression(2))
}

func (g *generator) name() string {
	return g.pick(`"api"`, `"my-db"`, `"backend"`, `"outputs"`, `"name"`, `"id"`, `"status"`, `"inputs"`, `"domain"`, `"components"`, `"org"`)
}

// expression makes one that has no parentheses around it yet.
func (g *generator) expression(depth int) string {
	if depth <= 0 || g.IntN(3) == 0 {
		return g.operand()
	}
	a := func() string { return "(" + g.expression(depth-1) + ")" }
	switch g.IntN(17) {
	case 0:
		return "index " + a() + " " + g.name()
	case 1:
		return "index $.nuon.components " + a()
	case 2:
		return "index $.nuon.components " + g.name() + " " + g.name()
	case 3:
		return "get " + a() + " " + a()
	case 4:
		return "default " + a() + " " + a()
	case 5:
		return "ternary " + g.operand() + " " + g.operand() + " " + g.pick("true", "false", "(hasKey $.nuon.components "+g.name()+")")
	case 6:
		return "or " + a() + " " + a()
	case 7:
		return "and " + a() + " " + a()
	case 8:
		return "coalesce " + a() + " " + a()
	case 9:
		return "list " + a() + " " + a()
	case 10:
		return "dict \"k\" " + a() + " " + g.name() + " " + a()
	case 11:
		return "first " + a()
	case 12:
		return "dig " + g.name() + " " + g.name() + " " + g.operand() + " " + a()
	case 13:
		return g.pick("toJson", "keys", "len", "kindOf", "lower", "print", "not", "empty", "values", "deepCopy", "last", "rest") + " " + a()
	case 14:
		return g.expression(depth-1) + " | " + g.pick("print", "toJson", "index $.nuon.components", "get $.nuon", "default "+a(), "list "+a())
	case 15:
		return a() + "." + g.pick("name", "status", "outputs", "k", "id", "org.name", "components.api.status")
	default:
		return "merge (dict) " + a()
	}
}

func (g *generator) operand() string {
	if len(g.vars) > 0 && g.IntN(3) == 0 {
		return g.pick(g.vars...) + g.pick("", "", ".name", ".outputs", ".status", ".k")
	}
	return g.pick(".", "$", ".nuon", "$.nuon", "$.nuon.org", "$.nuon.id", "$.nuon.name", "$.nuon.components", "$.nuon.components.api", "$.nuon.components.backend.outputs",
		"$.nuon.components.api.outputs.zones", "$.nuon.install", "$.nuon.install.sandbox", "$.nuon.install.inputs.domain", "$.nuon.inputs.inputs",
		"$.nuon.inputs.inputs.empty", "$.nuon.inputs.inputs.nothing", "$.berth.sandbox.outputs.cluster", "$.nuon.secrets", ".name", ".status", ".outputs", ".id",
		g.name(), g.name(), "1", "nil", `""`)
}
