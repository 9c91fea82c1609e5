package scaffold

import (
	"regexp"
	"strings"
)

// variable is a variable of a Terraform module, as far as it is read here.
type variable struct {
	name, kind, description string
	hasDefault, sensitive   bool
}

// variables finds the variables that one file of a module declares. It reads
// only as much of the language as that needs; Terraform itself says what is
// wrong with a module.
func variables(source string) []variable {
	var found []variable
	tokens := tokensOf(source)
	depth := 0
	for i, t := range tokens {
		switch {
		case t == "{" || t == "[" || t == "(":
			depth++
		case t == "}" || t == "]" || t == ")":
			depth--
		case depth == 0 && t == "variable" && i+2 < len(tokens) && isString(tokens[i+1]) && tokens[i+2] == "{":
			found = append(found, attributes(variable{name: strings.Trim(tokens[i+1], `"`)}, tokens[i+3:]))
		}
	}
	return found
}

// attributes reads the block of a variable up to its closing brace.
func attributes(v variable, tokens []string) variable {
	depth, start := 0, true // start: an attribute may begin here
	for i, t := range tokens {
		switch {
		case t == "\n":
			start = start || depth == 0
			continue
		case t == "{" || t == "[" || t == "(":
			depth++
		case t == "}" && depth == 0:
			return v
		case t == "}" || t == "]" || t == ")":
			depth--
		case start && depth == 0 && i+2 < len(tokens) && tokens[i+1] == "=":
			value := tokens[i+2]
			switch t {
			case "type":
				v.kind = strings.Trim(value, `"`)
			case "default":
				v.hasDefault = true
			case "sensitive":
				v.sensitive = value == "true"
			case "description":
				if isString(value) {
					v.description = unescaped.Replace(value[1 : len(value)-1])
				}
			}
		}
		start = false
	}
	return v
}

func isString(token string) bool { return len(token) >= 2 && token[0] == '"' }

// unescaped reads the escapes of a plain string.
var unescaped = strings.NewReplacer(`\\`, `\`, `\"`, `"`, `\n`, " ", `\t`, " ", "$${", "${", "%%{", "%{")

// tokenFormat is one token, white space and comments being tokens too. A string
// with a quote inside of an interpolation is read by stringEnd.
var (
	tokenFormat = regexp.MustCompile(`^(?:[ \t\r]+|#[^\n]*|//[^\n]*|(?s:/\*.*?\*/)|[\pL_][\pL\pN_-]*|\n|.)`)
	heredoc     = regexp.MustCompile(`^<<-?([\pL_][\pL\pN_-]*)[ \t\r]*\n`)
)

// tokensOf takes a source apart: names, strings with their quotes, line ends and
// single signs. Text blocks are strings too.
func tokensOf(source string) []string {
	var tokens []string
	for source != "" {
		if m := heredoc.FindStringSubmatch(source); m != nil {
			source = source[len(m[0]):]
			end := regexp.MustCompile(`(?m)^[ \t]*` + m[1] + `[ \t\r]*$`).FindStringIndex(source)
			if end == nil {
				return tokens
			}
			tokens = append(tokens, `"`+strings.Join(strings.Fields(source[:end[0]]), " ")+`"`)
			source = source[end[1]:]
			continue
		}
		n := len(tokenFormat.FindString(source))
		switch source[0] {
		case '"':
			n = stringEnd(source)
			tokens = append(tokens, source[:n])
		case ' ', '\t', '\r', '#':
		case '/':
			if n == 1 {
				tokens = append(tokens, "/")
			}
		default:
			n = max(n, 1) // a byte that is no letter of any language
			tokens = append(tokens, source[:n])
		}
		source = source[n:]
	}
	return tokens
}

// stringEnd finds the end of the string that a source begins with; what stands
// in ${…} or %{…} may have strings of its own.
func stringEnd(source string) int {
	for i := 1; i < len(source); i++ {
		switch {
		case source[i] == '\\':
			i++
		case source[i] == '"':
			return i + 1
		case (source[i] == '$' || source[i] == '%') && strings.HasPrefix(source[i+1:], string(source[i])+"{"):
			i += 2 // $${ is text
		case (source[i] == '$' || source[i] == '%') && strings.HasPrefix(source[i+1:], "{"):
			i = interpolationEnd(source, i+2) - 1
		}
	}
	return len(source)
}

// interpolationEnd finds the brace that closes an interpolation.
func interpolationEnd(source string, i int) int {
	for depth := 1; i < len(source); {
		switch source[i] {
		case '{':
			depth++
		case '}':
			if depth--; depth == 0 {
				return i + 1
			}
		case '"':
			i += stringEnd(source[i:])
			continue
		}
		i++
	}
	return len(source)
}
