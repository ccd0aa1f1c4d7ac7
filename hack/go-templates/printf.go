package main

import (
	"fmt"
	"strings"
)

// Formats.
var printf = []topic{
	{"printf", []string{
		`{{ "x" | printf "%s-%s" "y" }}`,
		`{{ .spec.image | printf "%q" | printf "<%s>" }}`,
		`{{ (printf "%s" .spec.image) | len }}`,
		`{{ printf "%d" (len (printf "%s%s" "a" "b")) }}`,
		`{{ printf "%s %s" .metadata.name .spec.image }}`,
		`{{ printf "%d|%5d|%-5d|%05d|%+d|% d|%x|%X|%#x|%o|%b|%c|%q|%U" 42 42 42 42 42 42 42 42 42 42 42 42 42 42 }}`,
		`{{ printf "%d %5d %05d %x" -42 -42 -42 -42 }}`,
		`{{ printf "%.3d|%8.3d|%-8.3d|%08.3d|%+.3d|%.0d" 7 7 7 7 7 0 }}`,
		`{{ printf "%#b %#o %O %#X %#U %#q" 5 8 8 255 233 97 }}`,
		`{{ printf "%s|%5s|%-5s|%.2s|%5.1s|%05s" "abc" "abc" "abc" "abc" "abc" "abc" }}`,
		`{{ printf "%q %+q %#q" "a\"é\n" "é😀" "raw" }}`,
		`{{ printf "%x|%X|% x|%#x|% #x|%.2x|%10x" "abc" "abc" "abc" "abc" "abc" "abc" "abc" }}`,
		`{{ printf "%v|%5v|%-5v|" "a" 1 true }}`,
		`{{ printf "%t|%6t|%-6t|" true false true }}`,
		`{{ printf "%f|%.2f|%8.3f|%-8.1f|%08.2f|%+.1f|% .1f" 3.14159 3.14159 3.14159 3.14159 3.14159 3.14159 3.14159 }}`,
		`{{ printf "%e|%.2e|%E|%g|%G|%.3g|%10.2g" 1234.5678 1234.5678 1234.5678 1234.5678 1e-10 1234.5678 0.000012345 }}`,
		`{{ printf "%g %g %g %g %g" 100000.0 1000000.0 0.0001 0.00001 1234567.5 }}`,
		`{{ printf "%.0f %.1g %.10g %g" 2.5 0.95 0.1 0.0 }}`,
		`{{ printf "%.3g %.1g %.2g %.4g" 100.0 123456.0 123.0 1e20 }}`,
		`{{ printf "%f %e %g" -0.5 -0.5 -0.5 }}`,
		`{{ printf "%T %T %T %T %T %T %T" "a" 1 .spec.replicas 1.5 true .spec.list .spec.map }}`,
		`{{ printf "%T %v %s %d" nil nil nil nil }}`,
		`{{ printf "%d" "x" }}`,
		`{{ printf "%s" 3 }}{{ printf "%s" .spec.replicas }}{{ printf "%s" true }}{{ printf "%d" 1.5 }}`,
		`{{ printf "%t %f %z" 1 1 1 }}`,
		`{{ printf "%5d" "x" }}`,
		`{{ printf "%s" }}{{ printf "%s %s" "a" }}`,
		`{{ printf "a" "b" 3 nil }}`,
		`{{ printf "%" }}{{ printf "100%%" }}{{ printf "%5" }}`,
		`{{ printf "%[2]s %[1]s" "a" "b" }}`,
		`{{ printf "%[3]s" "a" }}{{ printf "%[x]s" "a" }}{{ printf "%[1" "a" }}`,
		`{{ printf "%[1]d %d" 1 2 }}{{ printf "%[2]5d" 1 2 }}`,
		`{{ printf "%*d|%-*d|%.*f" 5 42 5 42 2 3.14159 }}`,
		`{{ printf "%*d" "x" 1 }}{{ printf "%.*d" -1 1 }}{{ printf "%*d" -5 1 }}|`,
		`{{ printf "%[2]*[1]d|" 1 5 }}`,
		`{{ printf "%v %s %d" .spec.list .spec.list .spec.list }}`,
		`{{ printf "%v %d %s" .spec.numbers .spec.numbers .spec.numbers }}`,
		`{{ printf "%v %q" .spec.map .spec.list }}`,
		`{{ printf "%d" .spec.map }}`,
		`{{ printf "%s" .spec.mixed }}`,
		`{{ printf "%5v|%-4v|" .spec.numbers .spec.list }}`,
		`{{ printf "%x %X" .spec.list "é" }}`,
		`{{ printf "%c%c %U" 233 128512 128512 }}`,
		`{{ printf "%6.2f%%" 99.5 }}`,
		`{{ printf "%08b" 5 }} {{ printf "%-8b|" 5 }} {{ printf "%x" 255 }}`,
		`{{ printf "%s" "é" | len }}`,
		`{{ printf "%5s|%-5s|" "é" "é" }}`,
		`{{ printf "%.2s" "éàü" }}`,
		`{{ printf "%+v %#s" "a" "b" }}`,
		`{{ printf "%010d|%+010d|%-010d|" 42 42 42 }}`,
		`{{ printf "%+q %q" 233 233 }}`,
		`{{ printf "%09.3f|%+09.3f|%-9.3f|" 3.14159 3.14159 3.14159 }}`,
		`{{ printf "%!" "a" }}`,
		`{{ printf "%d%s" 1 }}`,
		`{{ printf "%99999999d" 1 }}`,
		`{{ printf "%v" .spec.none }}|{{ printf "%v" .spec.nope }}`,
		`{{ printf "%q" .spec.quote }}`,
		`{{ $s := printf "%s-%s" .metadata.name .spec.image }}{{ $s }} {{ len $s }}`,
		`{{ printf "%d %d" 1 }}`,
		`{{ printf "%d" 1 2 }}`,
		`{{ printf "%d %s" "a" 1 }}`,
		`{{ printf "%%d" 1 }}`,
		`{{ printf "%5%|%-5%|%05%" }}`,
		`{{ printf "%[1]s %[1]q" "a" }}`,
		`{{ printf "%[2]d %d %[1]d" 1 2 3 }}`,
		`{{ printf "%[1]*d" 5 }}`,
		`{{ printf "%[1]*[2]d|" 5 7 }}`,
		`{{ printf "%[3]*.[2]*[1]f|" 12.0 2 6 }}`,
		`{{ printf "%6.*f|%-*d|" 2 1.5 4 7 }}`,
		`{{ printf "%[0]d" 1 }}`,
		`{{ printf "%[-1]d" 1 }}`,
		`{{ printf "%[]d" 1 }}`,
		`{{ printf "%[1]" 1 }}`,
		`{{ printf "%[2]d" 1 }}`,
		`{{ printf "%.[1]d" 1 }}`,
		`{{ printf "%.[1]*d" 3 4 }}`,
		`{{ printf "%*d" 5 }}`,
		`{{ printf "%*" 5 }}`,
		`{{ printf "%.*" 5 }}`,
		`{{ printf "%*d" 1.5 2 }}`,
		`{{ printf "%*d" .spec.replicas 2 }}`,
		`{{ printf "%*d|" 2000000 1 }}`,
		`{{ printf "%.d|%.x|%.s|%.f|" 0 255 "abc" 1.5 }}`,
		`{{ printf "%0-5d|%-05d|" 7 7 }}`,
		`{{ printf "% +d|%+ d|" 7 7 }}`,
		`{{ printf "%++d|%--5d|%##x|" 7 7 255 }}`,
		`{{ printf "%#08x|%#-8x|%#8x|" 255 255 255 }}`,
		`{{ printf "%+.3e|% .2g|%#.3g|%#g|" 1234.5 1234.5 1234.5 2.0 }}`,
		`{{ printf "%x|%X|%a" 1.5 1.5 1.5 }}`,
		`{{ printf "%b" 2.0 }}`,
		`{{ printf "%#v %#v %#v" 1 true .spec.replicas }}`,
		`{{ printf "%+v %+v" .spec.map 1 }}`,
		`{{ printf "%q" .spec.control }}`,
		`{{ printf "%+q" .spec.accent }}`,
		"{{ printf \"%#q\" \"a`b\" }}",
		`{{ printf "%#+q" "é" }}`,
		`{{ printf "%q" .spec.mixed }}`,
		`{{ printf "%x" .spec.map }}`,
		`{{ printf "%X" "héllo" }}`,
		`{{ printf "% X" "héllo" }}`,
		`{{ printf "%# x" "ab" }}`,
		`{{ printf "%x" "" }}|`,
		`{{ printf "%.1x" "abc" }}`,
		`{{ printf "%8q|%-8q|%08q|" "a" "a" "a" }}`,
		`{{ printf "%.2q" "abc" }}`,
		`{{ printf "%c|%5c|%-5c|%05c" 65 65 65 65 }}`,
		`{{ printf "%c %q %U" -1 -1 -1 }}`,
		`{{ printf "%c %q" 1114112 55296 }}`,
		`{{ printf "%#U %#U|%12U|%-12U|%#.6U" 9731 7 233 233 233 }}`,
		`{{ printf "%q %q %q" 39 10 127 }}`,
		`{{ printf "%d %d" .spec.big .spec.huge }}`,
		`{{ printf "%x %o %b" .spec.huge .spec.huge .spec.huge }}`,
		`{{ printf "%+d % d" .spec.huge .spec.huge }}`,
		`{{ printf "%d" -9223372036854775808 }}`,
		`{{ printf "%x %X %o %b" -9223372036854775808 -255 -8 -5 }}`,
		`{{ printf "%20d|%-20d|%020d" .spec.big .spec.big .spec.big }}`,
		`{{ printf "%30.25d|" 7 }}`,
		`{{ printf "%e %E" 0.0 123456789.0 }}`,
		`{{ printf "%.0e|%.10e|%#.0e" 1.5 1.5 1.5 }}`,
		`{{ printf "%.0f|%#.0f|%.20f" 1.5 1.5 0.1 }}`,
		`{{ printf "%g %g %g %g" 1e20 1e21 1e-4 1e-5 }}`,
		`{{ printf "%g %G" 1e100 1e-100 }}`,
		`{{ printf "%.3g|%.10g|%.0g" 0.00001234 123456789.0 15.0 }}`,
		`{{ printf "%6.3g|%-8.2g|%08.3g" 1.2345 1.2345 -1.2345 }}`,
		`{{ printf "%t" "true" }}`,
		`{{ printf "%v %v" .spec.nested .spec.matrix }}`,
		`{{ printf "%d" .spec.matrix }}`,
		`{{ printf "%s" .spec.ports }}`,
		`{{ printf "%6.2f" .spec.floats }}`,
		`{{ printf "%t" .spec.truths }}`,
		`{{ printf "%T" .spec.none }}`,
		`{{ printf "%T %T" .spec.big .spec.huge }}`,
		`{{ printf "%10T|%-10T|" 1 "a" }}`,
		`{{ printf "%é" 1 }}`,
		`{{ printf "é%dé" 1 }}`,
		`{{ printf "%s%s%s" "a" "b" "c" }}`,
		`{{ printf "%s" "%d" }}`,
		`{{ printf .spec.image }}`,
		`{{ printf (printf "%%%dd|" 5) 1 }}`,
		`{{ printf "%.3v|%8v|%-8v|" "abcdef" "abc" "abc" }}`,
		`{{ printf "%.3v" .spec.list }}`,
		`{{ printf "%w" 1 }}`,
		`{{ printf "%y %k" nil "a" }}`,
		`{{ printf "%5v|%-5v|%05v" nil nil nil }}`,
		`{{ printf "%s" .spec.accent }}`,
		`{{ printf "%-6s|%6s|" .spec.accent .spec.accent }}`,
		`{{ printf "% d|% d|% x" 5 -5 255 }}`,
		`{{ printf "%+x %+o %+b" 255 8 5 }}`,
		`{{ printf "%#b %#o %#O" -5 -8 -8 }}`,
		`{{ printf "%p" 1 }}`,
	}},
}

// The values that are formatted with every verb and flag, with an expression for each.
var values = []struct{ name, value string }{
	{"text", `"h\u00e9llo"`},
	{"an empty text", `""`},
	{"a constant", `42`},
	{"an integer", `.spec.negative`},
	{"a float", `.spec.pi`},
	{"a small float", `.spec.minus`},
	{"a boolean", `.spec.on`},
	{"nil", `.spec.none`},
	{"a list", `.spec.mixed`},
	{"a map", `.spec.map`},
}

var flags = []string{"", "+", "-", " ", "#", "0", "8", "-8", "08", "+8", ".2", "8.2", "-8.1", "+.0", "# ", "+#"}

const verbs = "vTtbcdoOqxXUeEfFgGspz"

// Returns one template for each value and flag, with every verb. `%p` of a list or a map and `%#v` of most values are left out: an
// address and Go source are not part of the language.
func matrix() []topic {
	var all []topic
	for _, value := range values {
		table := topic{name: "every verb of " + value.name}
		for _, flag := range flags {
			var format strings.Builder
			for _, verb := range verbs {
				address := verb == 'p' && (value.name == "a list" || value.name == "a map")
				source := verb == 'v' && strings.Contains(flag, "#")
				if !address && !source {
					fmt.Fprintf(&format, "%%[1]%s%c|", flag, verb)
				}
			}
			// The argument's index is before the verb, after width and precision.
			text := strings.ReplaceAll(format.String(), "[1]"+flag, flag+"[1]")
			table.templates = append(table.templates, fmt.Sprintf("{{ printf %q %s }}", text, value.value))
		}
		all = append(all, table)
	}
	return all
}
