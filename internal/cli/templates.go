package cli

import (
	"errors"
	"fmt"
	"strings"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/internal/operation"
	"github.com/chatctx/chatctx/internal/settings"
)

func init() { lookGroups = append(lookGroups, templateLooks) }

func templateLooks() map[string]look {
	missing := func(r *run, err error) error {
		if errors.Is(err, chatctx.ErrNotFound) {
			return &hinted{err, r.onStore("template ls") + " lists them"}
		}
		return err
	}
	return map[string]look{
		"templates.save": preparing(readTemplate, as(func(r *run, in *operation.NewTemplate, t operation.Template) {
			r.printf("saved the template %s in %s\n", t.Name, whereTemplate(t))
			if len(t.Keys) > 0 {
				r.note("send it: %s", r.onStore("send --template "+t.Name+" -p "+strings.Join(t.Keys, "=… -p ")+"=…"))
			}
		})),
		"templates.list": inFolder(as(func(r *run, _ *operation.TemplateQuery, t operation.Template) {
			line := pad(t.Name, 16) + "  " + whereTemplate(t)
			if t.Hidden {
				line += ", hidden by the file of this name"
			}
			if len(t.Keys) > 0 {
				line += ": " + strings.Join(t.Keys, ", ")
			}
			r.row(4, "%s", line)
		}).orNone(func(r *run) { r.note("no templates yet: %s", r.onStore("template save NAME TEXT")) })),
		"templates.show": orFails(inFolder(as(func(r *run, _ *operation.TemplateRef, t operation.Template) {
			if t.System != "" {
				r.printf("system: %s\n\n", clean(t.System))
			}
			r.printf("%s\n", clean(t.Text))
		})), func(r *run, _ *operation.TemplateRef, err error) error { return missing(r, err) }),
		"templates.remove": orFails(preparing(func(r *run, in *operation.OldTemplate) error { in.Dir = templateDir(); return nil },
			as(func(r *run, in *operation.OldTemplate, t operation.Template) {
				r.printf("removed the template %s from %s\n", t.Name, whereTemplate(t))
			})), func(r *run, in *operation.OldTemplate, err error) error {
			if errors.Is(err, chatctx.ErrNotFound) && !in.File {
				if _, ok, _ := in.InFile(); ok {
					return &hinted{fmt.Errorf("the store has %w", err), "to remove that of the file: " + r.again("template rm --in-file "+in.Name)}
				}
			}
			return missing(r, err)
		}),
	}
}

// whereTemplate says where a template is.
func whereTemplate(t operation.Template) string {
	if t.Place == operation.InStore {
		return "the store"
	}
	return clean(t.Place)
}

// inFolder tells an operation the folder for files of templates.
func inFolder(l look) look {
	l.first = func(_ *run, in any) error {
		*in.(interface{ Folder() *string }).Folder() = templateDir()
		return nil
	}
	return l
}

// readTemplate reads a template that may stand on standard input.
func readTemplate(r *run, in *operation.NewTemplate) (err error) {
	in.Dir = templateDir()
	if in.File && in.Dir == "" {
		return &usageError{"there is no folder for files of templates: CHATCTX_CONFIG is empty", "leave --in-file out to keep it in the store"}
	}
	if in.Text == "" && r.con.inTTY {
		return &usageError{"template save needs the text", "usage: chatctx template save NAME TEXT, or - for standard input"}
	}
	if in.Text == "" {
		in.Text = "-"
	}
	if in.System, err = r.systemText(in.System, in.Text, rawFlag(in.RawInput)); err != nil {
		return err
	}
	in.Text, err = r.text(in.Text, rawFlag(in.RawInput))
	return err
}

// templateFlags choose a template and fill it.
type templateFlags struct {
	Template string   `flag:"template" doc:"begin the message with the {TEMPLATE}, which template save keeps"`
	Values   []string `flag:"p" doc:"the {KEY=VALUE} for a gap of the template; may be given again"`
}

// filled returns the template that the flags name with their values in its gaps, the zero Template without one. It opens the store only where no file has it.
func (r *run) filled(in templateFlags) (settings.Template, error) {
	if in.Template == "" {
		if len(in.Values) > 0 {
			return settings.Template{}, usagef("-p is for --template")
		}
		return settings.Template{}, nil
	}
	values := map[string]string{}
	for _, v := range in.Values {
		key, value, ok := strings.Cut(v, "=")
		if _, twice := values[key]; !ok || key == "" || twice {
			return settings.Template{}, &usageError{fmt.Sprintf("-p %q: it is KEY=VALUE, each key once", v), "chatctx template show " + quote(in.Template)}
		}
		values[key] = value
	}
	t, err := r.templateNamed(in.Template)
	if err != nil {
		return settings.Template{}, err
	}
	out, err := t.Fill(values)
	if err != nil {
		return out, &usageError{err.Error(), "its keys: " + strings.Join(t.Keys, ", ") + "; nothing was stored"}
	}
	return out, validText(out.Text + out.System)
}

// templateNamed finds a template: in a file, else in the store.
func (r *run) templateNamed(name string) (operation.Template, error) {
	in := &operation.TemplateRef{TemplateFolder: operation.TemplateFolder{Dir: templateDir()}, Name: name}
	if t, ok, err := in.InFile(); ok || err != nil {
		return t, err
	}
	a := r.apart()
	defer a.close()
	if _, err := a.reader(); err != nil && !errors.Is(err, chatctx.ErrNotExist) {
		return operation.Template{}, err
	}
	t, err := operation.Lookup("templates.show").Run(a.request(), in)
	if err != nil {
		if errors.Is(err, chatctx.ErrNotFound) {
			err = &hinted{err, r.onStore("template ls") + " lists them"}
		}
		return operation.Template{}, err
	}
	return t.(operation.Template), nil
}

// templateNames are candidates for the completion.
func (r *run) templateNames() (list []candidate) {
	in := &operation.TemplateQuery{TemplateFolder: operation.TemplateFolder{Dir: templateDir()}}
	if _, err := r.reader(); err != nil && !errors.Is(err, chatctx.ErrNotExist) {
		return nil
	}
	out, err := operation.Lookup("templates.list").Run(r.request(), in)
	if err != nil {
		return nil
	}
	for _, t := range out.(operation.List[operation.Template]).Items {
		if !t.Hidden {
			list = append(list, candidate{t.Name, strings.Join(t.Keys, ", ")})
		}
	}
	return list
}

// joins refuses a template for a branch that has another system prompt than it brings along.
func (r *run) joins(c *chatctx.ChatContext, branchName, system string) error {
	info, err := c.Branch(r.ctx, branchName)
	if err != nil || system == "" || info.System == "" || info.System == system {
		return err
	}
	return &hinted{fmt.Errorf("%w: %s has another system prompt than the template; nothing was stored", chatctx.ErrConflict, clean(info.Name)),
		"begin a conversation: " + r.onStore("new") + "   or remove the prompt: " + r.again("system --clear")}
}
