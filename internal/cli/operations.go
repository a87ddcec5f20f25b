package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/approval"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/chatctx/turn"
	"github.com/chatctx/chatctx/internal/codec"
	"github.com/chatctx/chatctx/internal/contract"
	"github.com/chatctx/chatctx/internal/operation"
)

// look is how the result of an operation looks as text: all that a command itself knows of what it does.
type look struct {
	text          func(r *run, in, out any)             // of the result, or of each item of a list
	whole         bool                                  // text is of a whole list
	none          func(r *run, in any)                  // of an empty list
	asked         func(r *run, q *operation.Request)    // changes what it is asked with
	first         func(r *run, in any) error            // before the store is opened: what stands on standard input, in files, in the environment
	fails         func(r *run, in any, err error) error // adds what to type to an error
	then          func(r *run, in, out any) error       // after all else: what else there is to know, and the error of a result that is bad news
	table         func() string                         // below the help
	ask           func(r *run, plan any) string         // the question, if it depends on what would be done
	plan          func(r *run, in, plan any)            // of what would be done, as a whole
	question, why string                                // of what nothing takes back: what a person is asked who has seen what would be done, and why it is refused otherwise
	would         string                                // what is done to each of several conversations, said by --dry-run
}

// as is a look for an operation with these parameters and this result, or items of this kind.
func as[In, Out any](text func(r *run, in *In, out Out)) look {
	return look{text: func(r *run, in, out any) { text(r, in.(*In), out.(Out)) }}
}

// whole is a look for a list that is no lines as text.
func whole[In, Out any](text func(r *run, in *In, out Out)) look {
	l := as(text)
	l.whole = true
	return l
}

// orNone adds what is said of an empty list.
func (l look) orNone(say func(r *run)) look { l.none = func(r *run, _ any) { say(r) }; return l }

// preparing adds what is read before the store is opened, and checked of the line alone.
func preparing[In any](first func(r *run, in *In) error, l look) look {
	l.first = func(r *run, in any) error { return first(r, in.(*In)) }
	return l
}

// orFails adds what to type when it fails.
func orFails[In any](l look, fails func(r *run, in *In, err error) error) look {
	l.fails = func(r *run, in any, err error) error { return fails(r, in.(*In), err) }
	return l
}

// toEach adds what --dry-run says is done to each.
func (l look) toEach(would string) look { l.would = would; return l }

// lookGroups make the looks of operations, by their names. Each file adds its own.
var lookGroups []func() map[string]look

// looks are those of all operations, by their names. An operation without one shows its result as names and values.
func looks() map[string]look {
	all := map[string]look{}
	for _, some := range lookGroups {
		maps.Copy(all, some())
	}
	return all
}

// commandFor makes the command of an operation that looks as one of looks.
func commandFor(o *operation.Operation, looks map[string]look) *command {
	l := looks[o.Name]
	c := &command{name: o.Typed[strings.LastIndex(o.Typed, " ")+1:], does: o.Does, more: o.More, example: o.Example, scope: scopeFor(o), json: jsonOf(o), paged: !o.Changes(), table: l.table}
	if c.run = plainEntry(o, l); o.Each {
		c.run = eachEntry(o, l)
	}
	if o.List != "" {
		c.orList(commandFor(operation.Lookup(o.List), looks))
	}
	return c
}

// orList makes a command without arguments do what another one does.
func (c *command) orList(list *command) {
	do := c.run
	params := slices.Clone(do.params)
	i := slices.IndexFunc(params, func(p param) bool { return p.flag == nil })
	c.does += "; without " + params[i].bare() + ", " + list.does
	c.json += "; without " + params[i].bare() + ": " + list.json
	params[i].word = "[" + params[i].word + "]"
	c.run = &entry{params, do.fresh, func(r *run, in any) error {
		if len(r.line.args) == 0 {
			return list.run.do(r, list.run.fresh())
		}
		return do.do(r, in)
	}}
}

func scopeFor(o *operation.Operation) scope {
	return map[operation.Place]scope{operation.OnStore: onStore, operation.OnContext: onContext, operation.OnBranch: onBranch}[o.On]
}

// plainEntry does an operation once.
func plainEntry(o *operation.Operation, l look) *entry {
	return &entry{paramsOf(o.In), func() any { return reflect.New(o.In).Interface() }, func(r *run, in any) error {
		if l.first != nil {
			if err := l.first(r, in); err != nil {
				return err
			}
		}
		if err := r.openFor(o, in); err != nil && l.fails != nil {
			return l.fails(r, in, err)
		} else if err != nil {
			return err
		}
		operation.Locate(in, r.contextRef(), r.branchName())
		again, rest := repeated(paramsOf(o.In), in, r.line.args)
		if len(rest) == 0 {
			return r.operate(o, l, in)
		}
		all := append([]string{again.String()}, rest...)
		if f, ok := in.(operation.Finder); ok {
			for _, arg := range all {
				again.SetString(arg)
				if err := f.Find(r.request()); err != nil {
					return contextHint(err)
				}
			}
		}
		return doneInPart(all, func(arg string) error {
			again.SetString(arg)
			return r.operate(o, l, in)
		})
	}}
}

// doneInPart does something with each of several, and says with the error of a later one for how many it was done.
func doneInPart(all []string, do func(string) error) error {
	for i, one := range all {
		if err := do(one); err != nil && i > 0 {
			return contract.Partly(err, fmt.Sprintf("it is done for %d of %d", i, len(all)))
		} else if err != nil {
			return err
		}
	}
	return nil
}

// repeats reports whether a parameter of a struct is an argument of which there may be several, though the struct takes one.
func (p *param) repeats(of reflect.Type) bool {
	return p.flag == nil && strings.HasSuffix(strings.Trim(p.word, "[]"), "…") && of.FieldByIndex(p.index).Type.Kind() == reflect.String
}

// repeated returns the field for an argument of which there may be several while the operation takes one, and those that come after the first: it is done for each.
func repeated(params []param, in any, args []string) (field reflect.Value, rest []string) {
	n := 0
	for _, p := range params {
		if p.flag != nil {
			continue
		}
		n++
		if field = reflect.ValueOf(in).Elem().FieldByIndex(p.index); p.repeats(reflect.TypeOf(in).Elem()) && len(args) > n {
			return field, args[n:]
		}
	}
	return field, nil
}

// eachFlags say to which conversations an operation is done.
type eachFlags struct {
	Contexts []string `arg:"[CTX…]"`
	dryRunFlag
	operation.Filters
}

// eachEntry does an operation for each conversation that the command line selects, but for those where nothing would change.
func eachEntry(o *operation.Operation, l look) *entry {
	both := reflect.StructOf([]reflect.StructField{{Name: "In", Type: o.In, Tag: `params:""`}, {Name: "Each", Type: reflect.TypeFor[eachFlags](), Tag: `params:""`}})
	return &entry{paramsOf(both), func() any { return reflect.New(both).Interface() }, func(r *run, given any) error {
		v := reflect.ValueOf(given).Elem()
		in, each := v.Field(0).Addr().Interface(), v.Field(1).Interface().(eachFlags)
		if err := r.needsNames(each.Contexts, each.Filters, strings.ReplaceAll(o.Example, "\n", ", or ")); err != nil {
			return err
		}
		if _, err := r.changer(each.dryRunFlag); err != nil {
			return err
		}
		all, err := r.chosen(each.Contexts, each.Filters)
		if err != nil {
			return err
		}
		together, is := in.(operation.Together)
		if is {
			together.ForAll(idsOf(all))
		}
		if c, ok := in.(operation.Chooser); ok {
			if all, err = c.Concerned(r.request(), all, each.Given()); err != nil {
				return err
			}
		}
		switch {
		case each.DryRun || is && len(all) == 0:
			return r.wouldDo(all, l.would)
		case is:
			return r.operate(o, l, in)
		case len(all) == 0:
			r.note("nothing was changed")
		}
		return doneInPart(idsOf(all), func(id string) error {
			operation.Locate(in, id, "")
			return r.operate(o, l, in)
		})
	}}
}

// idsOf returns the ids of conversations.
func idsOf(all []*record.ContextInfo) []string {
	ids := make([]string, len(all))
	for i, info := range all {
		ids[i] = info.ID.String()
	}
	return ids
}

// request is what an operation is asked with on the command line, where a person may do everything.
func (r *run) request() *operation.Request {
	path, _ := r.storePath()
	return &operation.Request{Ctx: r.ctx, Store: r.st, Path: path, Name: r.storeName(), Rights: operation.Rights, Executor: func(c *chatctx.ChatContext) (*approval.Executor, func()) {
		return &approval.Executor{Context: c, Functions: r.ownTools(c)}, func() {}
	}, Turn: func(t *turn.Turn) {
		own := r.turn(t.Context, t.Branch)
		t.Calls = own.Calls
		maps.Copy(t.Settings, own.Settings)
	}, Save: saveNew, WriteFile: r.writeFile, Home: home(), Progress: func(text string) { r.note("%s", text) }}
}

// askFirst shows what an operation would do, and asks whether to do it, unless it is only tried.
func (r *run) askFirst(o *operation.Operation, l look, in any) error {
	t := in.(interface {
		Dry() bool
		Try(dry bool)
		Sure() bool
	})
	if own, ok := in.(interface{ Unopened() bool }); t.Dry() || ok && own.Unopened() {
		return nil
	}
	t.Try(true)
	plan, err := o.Run(r.request(), in)
	if t.Try(false); err != nil && l.fails != nil {
		err = l.fails(r, in, err)
	}
	if err != nil {
		return contextHint(err)
	}
	if n, ok := plan.(interface{ Nothing() bool }); ok && n.Nothing() {
		return nil
	}
	if !r.json() && l.plan != nil {
		l.plan(r, in, plan)
	} else if !r.json() {
		l.text(r, in, plan)
	}
	question := l.question
	if l.ask != nil {
		question = l.ask(r, plan)
	}
	return r.confirm(yesFlag{t.Sure()}, question, usagef("%s", l.why))
}

// openFor opens the store as an operation needs it.
func (r *run) openFor(o *operation.Operation, in any) (err error) {
	if own, ok := in.(interface{ Unopened() bool }); r.st != nil || ok && own.Unopened() {
		return nil // it is open already, or the operation opens stores itself
	}
	dry, ok := in.(interface{ Dry() bool })
	always, writes := in.(interface{ Writes() bool })
	switch {
	case writes && always.Writes():
		_, err = r.writer()
	case o.Judges:
		_, err = r.callStore()
	case (!o.Changes() || ok && dry.Dry()) && o.Caches:
		_, err = r.caching()
	case !o.Changes() || ok && dry.Dry():
		_, err = r.reader()
	case o.Makes(in):
		_, err = r.creator()
	default:
		_, err = r.writer()
	}
	if s, ok := in.(interface{ Storeless() bool }); ok && s.Storeless() && errors.Is(err, chatctx.ErrNotExist) && r.typedStore() == "" {
		err = nil
	}
	return err
}

// operate does an operation on the open store, and shows its result.
func (r *run) operate(o *operation.Operation, l look, in any) error {
	if l.why != "" {
		if err := r.askFirst(o, l, in); err != nil {
			return err
		}
	}
	asked := r.request()
	if l.asked != nil {
		l.asked(r, asked)
	}
	out, err := o.Run(asked, in)
	switch {
	case err != nil && l.fails != nil:
		return contextHint(l.fails(r, in, err))
	case err != nil:
		return contextHint(err)
	case l.text == nil:
		l.text = plainText
	}
	r.done = asked.Done
	show := func(one any) error { return r.emit(one, func() { l.text(r, in, one) }) }
	n := 1
	if instead := insteadOf(out); instead.IsValid() && l.plan != nil && !r.json() {
		l.plan(r, in, out)
	} else if instead.IsValid() {
		for i := 0; i < instead.Len() && err == nil && !r.stopped(); i++ {
			err = show(instead.Index(i).Interface())
		}
	} else if list, ok := out.(lineByLine); ok && (r.json() || !l.whole) {
		n = 0
		err = list.Each(func(item any) error {
			if r.stopped() {
				return errStopped
			}
			n++
			err := show(item)
			if o.Follows {
				r.con.out.flush()
			}
			return err
		})
	} else {
		err = show(out)
	}
	if errors.Is(err, errStopped) {
		return nil
	}
	if err != nil {
		return contextHint(err)
	}
	if n == 0 && l.none != nil {
		l.none(r, in)
	}
	if r.noteDone(asked.Done); l.then != nil {
		return l.then(r, in, out)
	}
	return nil
}

// insteadOf returns the list that is printed in place of a result, if a flag asked for it.
func insteadOf(out any) (list reflect.Value) {
	if v := reflect.ValueOf(out); v.Kind() == reflect.Struct {
		for f, v := range v.Fields() {
			if _, ok := f.Tag.Lookup("when"); ok && !v.IsNil() {
				list = v
			}
		}
	}
	return list
}

// lineByLine are results that are printed a line each: lists, whose items are their first field, and others whose first field is one of them.
type lineByLine interface {
	Each(do func(any) error) error
}

// errStopped ends a list of which nobody reads the rest.
var errStopped = errors.New("stopped")

// noteDone says how a change is taken back, and what becomes of summaries.
func (r *run) noteDone(done *record.Committed) {
	switch {
	case done == nil:
	case done.Operation == "":
		r.note("nothing was changed")
	default:
		r.note("undo with: %s", r.undoOf(done))
		r.noteSummaries(done)
	}
}

// plainText shows a result as names and values.
func plainText(r *run, _, out any) {
	raw, err := codec.AppendText(nil, out)
	var all map[string]json.RawMessage
	if err != nil || json.Unmarshal(raw, &all) != nil {
		r.printf("%s\n", clean(string(raw)))
		return
	}
	for _, f := range codec.Fields(reflect.TypeOf(out)) {
		if v, ok := all[f.Name]; ok {
			r.printf("%s: %s\n", f.Name, clean(strings.Trim(string(v), `"`)))
		}
	}
}

// jsonOf describes the JSON of an operation's result, for the help.
func jsonOf(o *operation.Operation) string {
	out, end := o.Out, ""
	if out.Kind() == reflect.Pointer {
		out = out.Elem()
	}
	if _, ok := reflect.Zero(out).Interface().(lineByLine); ok {
		end = "; a line each"
		line := out.Field(0)
		if items, ok := out.FieldByName("Items"); ok {
			line = items
		}
		if out = line.Type; out.Kind() == reflect.Slice {
			out = out.Elem()
		}
	}
	for f := range fieldsOf(o.Out) {
		if flag := f.Tag.Get("when"); flag != "" {
			end += "; " + whenGiven(flag) + members(f.Type.Elem(), nil)
		}
	}
	for _, p := range paramsOf(o.In) {
		if p.repeats(o.In) {
			end = "; a line each"
		}
	}
	if o.Each {
		end = "; a line each; with --dry-run as ls, with dry_run"
	}
	return members(out, nil) + end
}

// fieldsOf yields the fields of a struct, or of what a pointer leads to; of another type none.
func fieldsOf(t reflect.Type) iter.Seq[reflect.StructField] {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return func(yield func(reflect.StructField) bool) {
		for i := 0; t.Kind() == reflect.Struct && i < t.NumField(); i++ {
			if !yield(t.Field(i)) {
				return
			}
		}
	}
}

// whenGiven says when a list stands in place of a result: with a flag, or without an argument.
func whenGiven(tag string) string {
	if word, ok := strings.CutPrefix(tag, "-"); ok {
		return "without " + word + ": "
	}
	return "with --" + tag + ", a line each: "
}

// members lists the names in the JSON of a struct, those of structs in it in brackets. above are the structs around it.
func members(t reflect.Type, above []reflect.Type) string {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if f, ok := t.FieldByName("Entry"); t == reflect.TypeFor[chatctx.Entry]() || ok && f.Anonymous {
		return "a message"
	}
	var names []string
	for _, f := range codec.Fields(t) {
		name, inner, list := f.Name, f.Type, false
		for inner.Kind() == reflect.Pointer || inner.Kind() == reflect.Slice {
			list = list || inner.Kind() == reflect.Slice
			inner = inner.Elem()
		}
		if inner.Kind() == reflect.Struct && !codec.WritesItself(inner) && !codec.WritesItself(reflect.PointerTo(inner)) && !slices.Contains(above, inner) {
			name += "{" + members(inner, append(above, t)) + "}"
			if list {
				name = strings.Replace(name, "{", "[{", 1) + "]"
			}
		} else if list && inner.Kind() != reflect.Uint8 {
			name += "[]"
		}
		names = append(names, name)
	}
	return strings.Join(names, ", ")
}

// fillIn puts the commands of operations into the table: in place of a command of which only the name stands there, else at the end of what they belong to.
func fillIn(table []group) []group {
	made, all := map[string]*command{}, looks()
	for _, o := range operation.All() {
		if o.Typed != "" {
			made[o.Typed] = commandFor(o, all)
		}
	}
	for i := range table {
		replaceNames(table[i].commands, "", made)
	}
	for _, g := range operation.Groups() {
		i := slices.IndexFunc(table, func(have group) bool { return have.title == g.Heading })
		for _, o := range g.Of() {
			c := made[o.Typed]
			if c != nil && i < 0 {
				i, table = len(table), append(table, group{title: g.Heading})
			}
			over := &command{}
			if i >= 0 && g.Command != "" {
				over = under(&table[i], g)
			}
			switch {
			case c == nil:
			case g.Command == "":
				table[i].commands = append(table[i].commands, c)
			default:
				over.scope = max(over.scope, c.scope)
				over.subs = append(over.subs, c)
			}
		}
	}
	return table
}

// under returns the command that those of a group stand below.
func under(have *group, g operation.Group) *command {
	over := findCommand(have.commands, g.Command)
	if over == nil {
		over = &command{name: g.Command}
		have.commands = append(have.commands, over)
	}
	over.does = g.Does
	return over
}

// replaceNames puts a made command in the place of each that is only a name.
func replaceNames(list []*command, above string, made map[string]*command) {
	for i, c := range list {
		name := above + c.name
		if m := made[name]; m != nil && c.does == "" {
			m.subs = c.subs
			list[i], c = m, m
			delete(made, name)
		}
		replaceNames(c.subs, name+" ", made)
	}
}
