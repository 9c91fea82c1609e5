package output

import (
	"fmt"
	"io"
	"reflect"

	"github.com/berth-dev/berth/pkg/visible"
)

// Printf is fmt.Fprintf for people: text among the arguments stays on its line
// and is made visible, so that no value passes for another line of the output.
// The format is the program's.
func Printf(w io.Writer, format string, args ...any) (int, error) {
	return fmt.Fprintf(w, format, shown(args)...)
}

// Println is fmt.Fprintln in the same way.
func Println(w io.Writer, args ...any) (int, error) { return fmt.Fprintln(w, shown(args)...) }

func shown(args []any) []any {
	out := make([]any, len(args))
	for i, arg := range args {
		switch v := arg.(type) {
		case error:
			out[i] = visible.Row(v.Error())
		case fmt.Stringer:
			out[i] = visible.Row(v.String())
		default:
			out[i] = arg
			if text := reflect.ValueOf(arg); text.Kind() == reflect.String {
				out[i] = visible.Row(text.String())
			}
		}
	}
	return out
}
