package main

import (
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/percore/percore/internal/answers/claims"
	"github.com/percore/percore/internal/answers/figures"
	"github.com/percore/percore/internal/answers/portability"
	"github.com/percore/percore/internal/answers/published"
	"github.com/percore/percore/internal/answers/sizing"
)

// TestEveryFieldIsDocumented: what is written as JSON stands in the documents.
func TestEveryFieldIsDocumented(t *testing.T) {
	for file, values := range map[string][]any{
		"answers-json.md": {claims.Report{}, portability.Report{}, sizing.Plan{}},
		"report-json.md":  {figures.Tables{}, published.Listing{}, claims.Result{}},
	} {
		text, err := os.ReadFile("../../docs/" + file)
		if err != nil {
			t.Fatal(err)
		}
		seen := map[reflect.Type]bool{}
		for _, v := range values {
			fields(reflect.TypeOf(v), seen, func(of, name string) {
				if !strings.Contains(string(text), "`"+name+"`") {
					t.Errorf("docs/%s does not have %s of %s", file, name, of)
				}
			})
		}
	}
}

// fields calls f with the name of every field of a type as JSON has it, of the
// types within it too.
func fields(of reflect.Type, seen map[reflect.Type]bool, f func(of, name string)) {
	switch of.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Map:
		fields(of.Elem(), seen, f)
	case reflect.Struct:
		if seen[of] {
			return
		}
		seen[of] = true
		for i := range of.NumField() {
			field := of.Field(i)
			name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
			if field.IsExported() && name != "-" && (name != "" || field.Anonymous) {
				if name != "" {
					f(of.String(), name)
				}
				fields(field.Type, seen, f)
			}
		}
	}
}
