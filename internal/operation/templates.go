package operation

import (
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/chatctx/chatctx/internal/base"
	"github.com/chatctx/chatctx/internal/settings"
)

func init() {
	Register(Group{Heading: "Talking to a model", Command: "template", Does: "keep texts with gaps, for send --template", Of: templateOperations})
}

func templateOperations() []*Operation {
	return []*Operation{
		Define("templates.save", "POST", Admin, "keep a template: a text in which {{KEY}} is a gap", saveTemplate).Creating().
			With("send --template NAME -p KEY=VALUE fills the gaps and sends it; so does ask. A value is put in as it is, and no gap is looked for in it. A system prompt becomes that of the branch to which the text is sent. It is kept in the store, or with --in-file in a file of your own: NAME.txt, and NAME.system.txt for the system prompt, in the folder templates beside the config file; of two with one name the file's counts. No export, import or copy carries templates.").
			As("template save", "chatctx template save review \"Review this {{language}} code:\"\nchatctx template save review - --system \"You are strict.\" < review.txt"),
		Define("templates.list", "GET", Read, "list the templates, with their gaps and where they are", listTemplates).As("template ls", "chatctx template ls"),
		Define("templates.show", "GET", Read, "show a template", showTemplate).Fails("not_found").As("template show", "chatctx template show review"),
		Define("templates.remove", "POST", Admin, "remove a template from the store, or with --in-file its files", removeTemplate).Fails("not_found").As("template rm", "chatctx template rm review"),
	}
}

// TemplateFolder is the folder with the files of a person's templates, "" for none. What is about templates needs no store.
type TemplateFolder struct {
	Dir string `json:"-"`
}

// Folder is where the command line puts the folder.
func (f *TemplateFolder) Folder() *string { return &f.Dir }

// Storeless reports that operations about templates do something without a store too.
func (*TemplateFolder) Storeless() bool { return true }

// Template is a template with its name, and where it is.
type Template struct {
	Name   string   `json:"template"`
	Place  string   `json:"place"` // store, or the path of a file
	Keys   []string `json:"keys"`
	Hidden bool     `json:"hidden,omitempty"` // a file has the same name
	settings.Template
	Operation string `json:"operation,omitempty"`
}

func templateOf(name, place string, t settings.Template) Template {
	return Template{Name: name, Place: place, Keys: append([]string{}, t.Keys()...), Template: t}
}

// stored returns the store's templates.
func (r *Request) stored() (map[string]settings.Template, error) {
	out := map[string]settings.Template{}
	if r.Store == nil {
		return out, nil
	}
	set, err := r.Store.Settings(r.Ctx)
	for name, value := range set {
		var t settings.Template
		if name, ok := strings.CutPrefix(name, settings.TemplatePrefix); ok && json.Unmarshal(value, &t) == nil {
			out[name] = t
		}
	}
	return out, err
}

// The ends of the names of a template's files.
const textEnd, systemEnd = ".txt", ".system.txt"

// files returns the templates in files, each with the path of its text.
func (f *TemplateFolder) files() (map[string]Template, error) {
	out := map[string]Template{}
	if f.Dir == "" {
		return out, nil
	}
	all, err := os.ReadDir(f.Dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for _, e := range all {
		name, ok := strings.CutSuffix(e.Name(), textEnd)
		if !ok || !settings.IsTemplateName(name) {
			continue
		}
		path := filepath.Join(f.Dir, e.Name())
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		system, err := os.ReadFile(filepath.Join(f.Dir, name+systemEnd))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		out[name] = templateOf(name, path, settings.Template{Text: strings.TrimRight(string(text), "\r\n"), System: strings.TrimRight(string(system), "\r\n")})
	}
	return out, nil
}

// TemplateQuery asks for all templates.
type TemplateQuery struct{ TemplateFolder }

func listTemplates(r *Request, in *TemplateQuery) (List[Template], error) {
	files, err := in.files()
	if err != nil {
		return List[Template]{}, err
	}
	stored, err := r.stored()
	all := slices.Collect(maps.Values(files))
	for name, t := range stored {
		one := templateOf(name, InStore, t)
		_, one.Hidden = files[name]
		all = append(all, one)
	}
	slices.SortFunc(all, func(a, b Template) int {
		if a.Name != b.Name {
			return strings.Compare(a.Name, b.Name)
		}
		if a.Hidden {
			return 1
		}
		return -1
	})
	return ListOf(all), err
}

// TemplateRef names a template.
type TemplateRef struct {
	TemplateFolder
	Name string `json:"template" arg:"TEMPLATE" doc:"the name"`
}

// InFile returns the template that a file holds.
func (in *TemplateRef) InFile() (t Template, ok bool, err error) {
	files, err := in.files()
	t, ok = files[in.Name]
	return t, ok, err
}

func showTemplate(r *Request, in *TemplateRef) (Template, error) {
	if !settings.IsTemplateName(in.Name) {
		return Template{}, base.Invalidf("a template's name is of letters, digits, - and _: not %q", in.Name)
	}
	if t, ok, err := in.InFile(); ok || err != nil {
		return t, err
	}
	stored, err := r.stored()
	if err != nil {
		return Template{}, err
	}
	t, ok := stored[in.Name]
	if !ok {
		return Template{}, base.NotFound("template", in.Name)
	}
	return templateOf(in.Name, InStore, t), nil
}

// NewTemplate is a template to keep.
type NewTemplate struct {
	TemplateFolder
	Name   string `json:"template" arg:"NAME" doc:"the name: letters, digits, - and _"`
	Text   string `json:"text" arg:"[TEXT|-]" doc:"the text; {{KEY}} in it is a gap"`
	System string `json:"system,omitempty" flag:"system" doc:"the system prompt {TEXT}, - for standard input"`
	File   bool   `json:"-" flag:"in-file" old:"file" doc:"of a file beside the config file, in place of the store"`
	RawInput
}

// wantsStore reports whether the store is made for the template.
func (in *NewTemplate) wantsStore() bool { return !in.File }

func saveTemplate(r *Request, in *NewTemplate) (Template, error) {
	t := settings.Template{Text: in.Text, System: in.System}
	value, err := json.Marshal(t)
	switch {
	case err != nil:
		return Template{}, err
	case !settings.IsTemplateName(in.Name):
		return Template{}, base.Invalidf("a template's name is of letters, digits, - and _: not %q", in.Name)
	case strings.TrimSpace(in.Text) == "":
		return Template{}, base.Invalid("the text of the template is empty")
	case in.File:
		return in.write(t)
	}
	return r.putTemplate(in.Name, value, t)
}

// putTemplate sets or removes a template of the store.
func (r *Request) putTemplate(name string, value json.RawMessage, t settings.Template) (Template, error) {
	done, err := r.Store.SetSettings(r.Ctx, map[string]json.RawMessage{settings.TemplatePrefix + name: value})
	if err != nil {
		return Template{}, err
	}
	r.Done = done
	out := templateOf(name, InStore, t)
	out.Operation = done.Operation
	return out, nil
}

// write writes a template's files, each as a whole.
func (in *NewTemplate) write(t settings.Template) (Template, error) {
	path, system := filepath.Join(in.Dir, in.Name+textEnd), filepath.Join(in.Dir, in.Name+systemEnd)
	if err := os.MkdirAll(in.Dir, 0o700); err != nil {
		return Template{}, err
	}
	err := os.Remove(system)
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	if t.System != "" && err == nil {
		err = WriteWhole(system, t.System+"\n")
	}
	if err == nil {
		err = WriteWhole(path, t.Text+"\n")
	}
	return templateOf(in.Name, path, t), err
}

// WriteWhole replaces a file, which is never there in part.
func WriteWhole(path, text string) error {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name())
	}
	return err
}

// OldTemplate names the template that is removed.
type OldTemplate struct {
	TemplateRef
	File bool `json:"-" flag:"in-file" old:"file" doc:"of a file beside the config file, in place of the store"`
}

func removeTemplate(r *Request, in *OldTemplate) (Template, error) {
	if in.File {
		files, err := in.files()
		t, ok := files[in.Name]
		if err != nil || !ok {
			return t, errors.Join(err, base.NotFound("template", in.Name))
		}
		if err := os.Remove(filepath.Join(in.Dir, in.Name+systemEnd)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return t, err
		}
		return t, os.Remove(t.Place)
	}
	stored, err := r.stored()
	t, ok := stored[in.Name]
	if err != nil || !ok {
		return Template{}, errors.Join(err, base.NotFound("template", in.Name))
	}
	return r.putTemplate(in.Name, json.RawMessage("null"), t)
}
