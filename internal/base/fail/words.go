package fail

import (
	"fmt"
	"strings"
)

// Setting is the name of something a person sets. How it is set only the
// command line knows: a flag, a variable of make.
type Setting string

func (s Setting) String() string { return string(s) }

// Value is a setting with what to set it to.
type Value struct {
	Setting Setting
	Value   string
}

// To is the setting with a value, or with a word that stands for one.
func (s Setting) To(value any) Value { return Value{s, fmt.Sprint(value)} }

func (v Value) String() string { return string(v.Setting) + " " + v.Value }

// Command is something that a person can have percore do: the words of the
// command, its argument if any, and settings.
type Command struct {
	Name     string // as in "cloud down"
	Settings []any  // a string that stands for itself, a Setting or a Value each
}

// Call makes a Command. Each of the settings is a string that stands for
// itself, a [Setting] or a [Value].
func Call(name string, settings ...any) Command { return Command{name, settings} }

func (c Command) String() string { return c.Words(nil) }

// Words writes the command without quotes, its settings as how does.
func (c Command) Words(how Words) string {
	parts := []string{"percore " + c.Name}
	for _, s := range c.Settings {
		parts = append(parts, fmt.Sprint(how.say(s)))
	}
	return strings.Join(parts, " ")
}

// Words replaces a [Setting], a [Value] or a [Command] by how its reader gives
// it. A nil Words leaves it as it is.
type Words func(any) string

// Say writes a [Setting], a [Value] or a [Command].
func (w Words) Say(arg fmt.Stringer) string { return fmt.Sprint(w.say(arg)) }

func (w Words) say(arg any) any {
	switch arg.(type) {
	case Setting, Value, Command:
		if w != nil {
			return w(arg)
		}
	}
	return arg
}

// Sprintf is fmt.Sprintf with settings and commands as how writes them, and
// errors with their remedies.
func Sprintf(how Words, format string, args ...any) string {
	said := make([]any, len(args))
	for i, a := range args {
		said[i] = how.say(a)
		if err, ok := a.(error); ok {
			said[i] = Sentence(err, how)
		}
	}
	return fmt.Sprintf(format, said...)
}

// Text is a sentence, or a part of one, whose settings and commands are written
// when it is known for whom.
type Text struct {
	format string
	args   []any
}

// Textf makes a Text.
func Textf(format string, args ...any) Text { return Text{format, args} }

// In is the text with settings and commands as how writes them.
func (t Text) In(how Words) string { return Sprintf(how, t.format, t.args...) }

func (t Text) String() string { return t.In(nil) }
