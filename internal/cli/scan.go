package cli

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/chatctx/chatctx/chatctx/exchange"
	"github.com/chatctx/chatctx/internal/machine"
	"github.com/chatctx/chatctx/internal/watch"
)

// machine says where programs keep their files on this machine.
func (r *run) machine() machine.Folders {
	m := machine.Folders{Getenv: os.Getenv}
	m.Home, _ = os.UserHomeDir() // "" if there is none: nothing is found in it
	m.Config, _ = os.UserConfigDir()
	m.Current, _ = os.Getwd()
	switch runtime.GOOS {
	case "windows":
		m.Data = os.Getenv("LOCALAPPDATA")
	case "darwin":
		m.Data = m.Config
	default:
		if m.Data = os.Getenv("XDG_DATA_HOME"); m.Data == "" && m.Home != "" {
			m.Data = filepath.Join(m.Home, ".local", "share")
		}
	}
	return m
}

// places selects what --scan and --watch import: the places of the named tools, of all with --all, and paths.
func (in *importIn) places(found []exchange.Place) ([]string, error) {
	var paths []string
	for _, p := range found {
		if in.All || slices.Contains(in.Paths, p.Tool) {
			paths = append(paths, p.Path)
		}
	}
	for _, arg := range in.Paths {
		switch {
		case slices.ContainsFunc(found, func(p exchange.Place) bool { return p.Tool == arg }):
		case slices.Contains(machine.Tools(), arg):
			return nil, &usageError{"nothing of " + arg + " is on this machine, in the places where it keeps its files by itself", "give its file or folder instead: chatctx import PATH"}
		case in.Watch:
			if _, err := os.Stat(arg); err != nil {
				return nil, err
			}
			paths = append(paths, arg)
		default:
			return nil, usagef("import --scan knows no tool %q: it knows %s", arg, strings.Join(machine.Tools(), ", "))
		}
	}
	return paths, nil
}

// doScan lists what tools of this machine keep, or imports it.
func doScan(r *run, in *importIn) error {
	found := r.machine().Places()
	if len(in.Paths) > 0 || in.All {
		paths, err := in.places(found)
		if err != nil {
			return err
		}
		if len(paths) == 0 {
			return errors.New("no conversations of other tools were found on this machine: name a file or folder")
		}
		return importPaths(r, in, paths)
	}
	if found == nil {
		found = []exchange.Place{}
	}
	return r.emit(map[string]any{"places": found}, func() {
		for _, p := range found {
			r.printf("%-12s %s, %s, newest of %s  %s\n", p.Tool, count(p.Files, "file"), size(p.Bytes), p.Changed.Format("2006-01-02 15:04"), clean(p.Path))
		}
		if len(found) == 0 {
			r.note("no conversations of other tools were found on this machine: name a file or folder")
			return
		}
		r.note("import it: %s   or some of it: %s", r.again("import --scan --every-tool"), r.again("import --scan "+found[0].Tool))
	})
}

// doWatch imports places, and continues with what is written there until it is stopped.
func doWatch(r *run, in *importIn) error {
	paths, err := in.places(r.machine().Places())
	if err != nil {
		return err
	}
	if len(paths) == 0 {
		return usagef("import --watch needs a tool, a file, a folder or --every-tool")
	}
	if err := r.canBecome(paths); err != nil {
		return err
	}
	st, err := r.creator()
	if err != nil {
		return err
	}
	f := &machine.Follower{Store: st, Options: exchange.Options{Purged: in.Purged}, Report: func(path string, rep *exchange.Report) { r.followed(path, rep) }}
	ctx, cancel := context.WithCancelCause(r.ctx)
	defer cancel(nil)
	changed := make(chan string, 1000)
	ready := make(chan struct{})
	go func() {
		cancel(watch.Files(ctx, paths, func() { close(ready) }, func(p string) { // changes during the first import wait
			select {
			case changed <- p:
			case <-ctx.Done():
			}
		}))
	}()
	select {
	case <-ready:
	case <-ctx.Done():
		return r.watchEnded(ctx)
	}
	defer frugal()()
	rep, err := exchange.Import(ctx, st, paths, exchange.Options{Progress: r.progress(), Purged: in.Purged})
	r.endProgress()
	if err == nil || rep.Changed() {
		r.followed(strings.Join(paths, ", "), rep)
	}
	if err != nil && ctx.Err() == nil {
		return err
	}
	if ctx.Err() == nil {
		r.note("watching; Ctrl-C ends it")
	}
	for ctx.Err() == nil {
		due, waiting := f.Due()
		var timer <-chan time.Time
		if waiting {
			timer = time.After(time.Until(due))
		}
		select {
		case <-ctx.Done():
		case p := <-changed:
			f.Changed(p)
			continue
		case <-timer:
		}
		if err := f.Take(ctx); err != nil && ctx.Err() == nil {
			return err
		}
	}
	return r.watchEnded(ctx)
}

// canBecome refuses to watch files alone that hold something else than conversations. A folder, or a file that a tool has only begun, may have some later.
func (r *run) canBecome(paths []string) error {
	later := func(path string) bool {
		info, err := os.Stat(path)
		return err != nil || info.IsDir() || info.Size() == 0
	}
	if slices.ContainsFunc(paths, later) {
		return nil
	}
	rep, found, err := r.anythingIn(&importSource{paths: paths})
	if found || err != nil || rep.Outcome() != exchange.Nothing {
		return err
	}
	return errors.New("nothing could be read" + firstWarning(rep))
}

// watchEnded returns the result of a watch: none if a person stopped it.
func (r *run) watchEnded(ctx context.Context) error {
	if r.ctx.Err() != nil {
		return nil
	}
	return context.Cause(ctx)
}

// followed reports the result for a file, in one line.
func (r *run) followed(path string, rep *exchange.Report) {
	defer r.con.out.flush()
	if r.json() {
		r.printJSON(struct { // an error of the output ends the command at its end
			Path string `json:"path"`
			*exchange.Report
		}{path, rep})
		return
	}
	r.printf("%s  %s in %s, from %s\n", time.Now().Format("15:04:05"), count(rep.Messages, "message"), count(rep.Contexts, "conversation"), clean(path))
	for _, w := range rep.Warnings {
		r.note("%s", strings.TrimPrefix(warningText(w), ": "))
	}
}
