package chatctx

import (
	"context"

	"github.com/chatctx/chatctx/chatctx/internal/intake"
	"github.com/chatctx/chatctx/chatctx/internal/record"
	"github.com/chatctx/chatctx/chatctx/internal/view"
	"github.com/chatctx/chatctx/chatctx/kv"
)

// NativeView is a context as it is at one moment. Branches are in the order they were made.
type NativeView struct {
	Context  Native
	Branches []*Snapshot
	Tags     map[string]ID
	Marks    map[ID]string
	Calls    []NativeCall // those that were open in this store at some time
}

// NativeView reads all of the context but its messages, which the snapshots of its branches give.
func (c *ChatContext) NativeView(ctx context.Context) (*NativeView, error) {
	v := &NativeView{}
	err := view.At(ctx, c.at(), func(tx kv.Tx, rec *record.ContextRecord) error {
		active, err := view.ActiveBranch(tx, c.ID, rec)
		if err != nil {
			return err
		}
		*v = NativeView{Context: Native{ID: c.ID, Title: rec.Title, Derived: rec.Derived, Parent: rec.Parent, Settings: rec.Settings,
			AppData: rec.AppData, Active: active.Name, Created: rec.Created, Updated: rec.Updated, Task: rec.Task}}
		infos, err := view.BranchInfos(tx, c.ID, rec)
		if err != nil {
			return err
		}
		for _, info := range infos {
			v.Branches = append(v.Branches, &Snapshot{ctx: c, Info: info})
		}
		if v.Marks, err = view.Marks(tx, c.ID); err != nil {
			return err
		}
		if v.Calls, err = intake.NativeCalls(tx, c.ID); err != nil {
			return err
		}
		v.Tags = map[string]ID{}
		tagged, err := view.TagsOf(tx, c.ID)
		for id, names := range tagged {
			for _, name := range names {
				v.Tags[name] = id
			}
		}
		return err
	})
	return v, err
}
