package chatctx

import (
	"context"

	"github.com/chatctx/chatctx/chatctx/kv"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/base"
	"github.com/chatctx/chatctx/internal/intake"
	"github.com/chatctx/chatctx/internal/view"
)

// NativeFormat is the name of the format of exported contexts in reports.
const NativeFormat = intake.NativeFormat

// NativeView is a context as it is at one moment. Branches are in the order in which they were made.
type NativeView struct {
	Context  record.Native
	Branches []*Snapshot
	Tags     map[string]ID
	Marks    map[ID]string
	Calls    []record.NativeCall // calls that were open in this store at some time
}

// NativeView reads everything of the context except its messages, which the snapshots of its branches give.
func (c *ChatContext) NativeView(ctx context.Context) (*NativeView, error) {
	v := &NativeView{}
	err := view.At(ctx, c.at(), func(tx kv.Tx, rec *base.ContextRecord) error {
		active, err := view.ActiveBranch(tx, c.ID, rec)
		if err != nil {
			return err
		}
		*v = NativeView{Context: record.Native{ID: c.ID, Title: rec.Title, Derived: rec.Derived, Renamed: rec.Named(), Parent: rec.Parent, Settings: rec.Settings,
			AppData: rec.AppData, Labels: rec.Labels, Active: active.Name, Created: rec.Created, Updated: rec.Updated, Task: rec.Task}}
		infos, err := view.BranchInfos(tx, c.ID, rec)
		if err != nil {
			return err
		}
		for _, info := range infos {
			v.Branches = append(v.Branches, c.snapshot(info))
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
