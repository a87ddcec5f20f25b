package main

// What walks the whole store, and the tests of single ideas beside it.
const (
	model = "chatctx:^TestModel$"
	store = "chatctx:^Test[^M]"
)

var (
	ofStore = []string{model, store}
	ofTurn  = []string{"chatctx/turn"}
	ofDraft = []string{"internal/window"}
	ofFiles = []string{store, "chatctx/exchange"}
	ofRules = []string{"chatctx/approval", store}
	ofLine  = []string{"internal/cli:^Test(Split|Traps|App|Order)"}
)

// bugs are the ones that tests have to catch: comparisons turned, checks left out, off by one, an error dropped.
var bugs = []bug{
	// the journal, undo and redo
	{"undo does not ask what stands on the operation", `newest = newest && top == n`, `_ = top`, ofStore},
	{"a command goes on over somebody else's operation", `if op == nil || op.Group != t.group { t.group = n }`, `_ = op`, ofStore},
	{"what was done after an undo leaves its redo", `undo.Expired || slices.ContainsFunc(before, func(o *base.Operation) bool { return share(undo, o) }) {`, `undo.Expired {`, ofStore},
	{"redo asks for nothing that stands on it", `if share(op, undo) {`, `if false && share(op, undo) {`, ofStore},
	{"an operation is undone whose changes gc has taken", `if op.Expired { return nil, base.Conflict(`, `if op.What == "" { return nil, base.Conflict(`, ofStore},
	{"undo leaves a branch's newest operation as it was", `if top == n { return c.Prev, nil }`, `if top == n { return n, nil }`, ofStore},
	{"undo reverts a call that ran", `if is.Execution != pool.NotRun && !broughtResult(is, back) {`, `if false {`, ofStore},
	{"undo makes a call wait on two branches", `if err != nil || len(holders) > 1 {`, `if err != nil || len(holders) > 100 {`, ofStore},
	{"a session stands though what its summary tells of changed", `if at < told || at+inserted == length`, `if at < told-1 || at+inserted == length`, ofStore},
	{"undo leaves a branch active that is gone", `if err != nil || l != nil && l.Removed == 0 { return err } if l == nil {`, `if err != nil || l != nil { return err }
	if l == nil {`, ofStore},
	{"an operation on the context has no revision of its branches", `l.Revision++ chains = append(chains, base.Chain{Name: l.Name`, `chains = append(chains, base.Chain{Name: l.Name`, ofStore},
	{"an undo keeps the revision", `l.Revision++ if l.Last, err = last(i, l.Last); err != nil {`, `if l.Last, err = last(i, l.Last); err != nil {`, ofStore},
	{"a title stands on the removal of a branch", `if x.none() || y.none() { return false }`, `if Touches(a, b.Chains) { return true }`, ofStore},
	{"an undo restores all settings of its place", `if table[key].role != each { continue }`, `continue`, ofStore},
	{"an operation that comes back is not in its place", `c.Prev, link.Prev = link.Prev, n`, `c.Prev = link.Prev`, ofStore},
	{"a key and its address are two things", `if settings.Addresses(name) {`, `if false {`, ofStore},
	{"a splice is not on the journal", `if !t.Branches[b.ID].created { t.changes = append(t.changes, base.Change{Kind: base.SpliceChange, Key: b.ID[:], At: at`,
		`if t.Branches[b.ID].created { t.changes = append(t.changes, base.Change{Kind: base.SpliceChange, Key: b.ID[:], At: at`, ofStore},
	{"a removed branch's pieces stay in the list of open calls", `t.Rec.Branches-- if err := t.Show(b, b.Pieces, false); err != nil { return err } return t.reindex()`, `t.Rec.Branches--
	return t.reindex()`, ofStore},
	{"undo gives a name twice", `if err == nil && id != (pool.ID{}) { err = base.Conflict("there is a branch %q again`, `if err != nil && id != (pool.ID{}) { err = base.Conflict("there is a branch %q again`, ofStore},
	{"a name that is given up stays in the index", `if err := branchstore.DeleteName(t.Tx, t.ID, l.named); err != nil { return err }`, ``, ofStore},
	{"a message inserted where a session begins moves it", `if s.Start > at+1 {`, `if s.Start > at {`, ofStore},
	{"the active branch is removed", `} else if active { return base.Conflict("%q is the active branch`, `} else if false { return base.Conflict("%q is the active branch`, ofStore},

	// messages and ids
	{"other words under an id are taken", `if err == nil && !same { err = taken(m.ID) }`, `_ = same`, ofStore},
	{"edit keeps thinking", `case p.Type == pool.ThinkingPart: case p.Type != pool.TextPart:`, `case p.Type != pool.TextPart:`, ofStore},
	{"an edited call keeps what was decided", `if c := &m.Calls[i]; c.Status != pool.Denied { c.Status, c.Execution, c.Reason = pool.Pending, pool.NotRun, "" } } if err := m.Validate()`,
		`if c := &m.Calls[i]; c.Status == pool.Denied { c.Status, c.Execution, c.Reason = pool.Pending, pool.NotRun, "" } }
	if err := m.Validate()`, ofStore},
	{"a fork shares calls that wait", `if i := branchstore.Place(pieces, u.Home.Segment, u.Home.Position); i >= 0 && !slices.Contains(places, i) {`,
		`if i := branchstore.Place(pieces, u.Home.Segment, u.Home.Position); i > 0 && !slices.Contains(places, i) {`, ofStore},
	{"drop leaves a call's results", `if m.Result != nil && waiting[m.Result.RequestID] { set[next] = true`, `if m.Result != nil && waiting[m.Result.RequestID] { delete(set, next)`, ofStore},
	{"pick shares a message that is held", `if !held[id] { continue }`, `if held[id] { continue }`, ofStore},
	{"an idempotency key is forgotten at once", `if err != nil || !ok || rec.At+keyLife < t.Now {`, `if err != nil || !ok || rec.At < t.Now {`, ofStore},
	{"a tag is taken from another message", `return base.Conflict("the tag %q is on %s`, `_ = base.Conflict("the tag %q is on %s`, ofStore},
	{"a batch goes on at another revision", `if revision != nil && *revision != t.Target.Revision {`, `if revision != nil && *revision > t.Target.Revision+100 {`, ofStore},

	// gc
	{"gc ignores marks", `l.messages[pool.ID(key[16:])] = "a mark"`, `_ = "a mark"`, ofStore},
	{"gc ignores tags", `l.messages[pool.ID(value)] = "a tag"`, `_ = "a tag"`, ofStore},
	{"gc ignores the queue", `l.messages[pool.ID(value[:16])] = "the queue"`, `_ = "the queue"`, ofStore},
	{"gc ignores the summaries of sessions", `l.messages[s.Summary] = "a session's summary"`, `_ = "a session's summary"`, ofStore},
	{"gc takes what undo needs", `case c.Kind == base.SpliceChange: l.pieces = append(l.pieces, c.Removed, c.Inserted)`, `case c.Kind == base.SpliceChange:`, ofStore},
	{"gc keeps one operation less", `seen > c.o.KeepOperations`, `seen >= c.o.KeepOperations`, ofStore},
	{"gc takes the count of turns before a piece", `before = before || p.From == at+1`, `before = before || p.From == at+2`, ofStore},

	// calls
	{"a claim's token is not compared when it is renewed", `if !ok || claim.Token != k.Token {`, `if !ok {`, []string{"chatctx:Call|Claim", store, "chatctx/approval"}},
	{"a claim's token is not compared when a call is answered", `case by.Token != (pool.ID{}) && a.Rec.Token != by.Token:`, `case false:`, ofStore},
	{"a call is claimed that nobody approved", `if !fresh && !again {`, `if !fresh && !again && false {`, ofStore},
	{"a call is decided twice", `if a.Rec.Status != pool.Pending && !cancels {`, `if a.Rec.Status != pool.Pending && !cancels && false {`, ofStore},
	{"a call's time is over a moment late", `now >= c.Expires`, `now > c.Expires`, []string{"chatctx:Expire|Call", store, "chatctx/approval"}},
	{"an expired call of an older turn gets a result", `if err != nil || !last && v.Kind == record.ByExpiry {`, `if err != nil || !last && false {`, ofStore},
	{"a failed tool is done", `if a.Result.IsError { execution = pool.Failed } d := answerBy(`, `d := answerBy(`, ofStore},
	{"an appended result ends the claim of a program that runs the call", `if err != nil || !ok || claim.Task == (pool.ID{}) && base.Dead(claim, t.Now) { return nil, err } return claim, nil`,
		`if err != nil || !ok || claim.Task == (pool.ID{}) {
		return nil, err
	}
	return claim, nil`, ofStore},

	// replies
	{"a reply that lost its claim is stored", `case claim.Token != r.token:`, `case false:`, ofStore},
	{"a second reply begins", `case holder == nil || base.Dead(holder, t.Now):`, `case true:`, ofStore},
	{"what was saved of a reply is lost", `m, err = settlePartial(t, t.Target)`, ``, ofStore},
	{"an undo moves what an answer stands on", `if err := t.undisturbed(op); err != nil { return err }`, ``, ofStore},
	{"a branch goes away under an answer", `if err := t.stays(b); err != nil { return err } b.Removed = max(t.Now, 1)`, `b.Removed = max(t.Now, 1)`, ofStore},
	{"history moves under an answer", `if !grows(b, at, removed, insert) {`, `if false {`, ofStore},
	{"what waits is answered by a reply that failed", `if !e.Stop {`, `if true {`, ofStore},

	// turn
	{"the limit of tokens is off by one", `s.out.spent() >= s.Tokens`, `s.out.spent() > s.Tokens`, ofTurn},
	{"a failed reply keeps its claim", `return s.out, errors.Join(err, s.giveUp(ctx))`, `return s.out, err`, ofTurn},
	{"calls of older turns are waited for", `if e.Turn != turn { break }`, ``, ofTurn},
	{"one round too many", `for range rounds { more, err := s.round(ctx)`, `for range rounds + 1 {
		more, err := s.round(ctx)`, ofTurn},
	{"a reply does not say when it was done", `if m != nil { k.complete(m) } return m, err`, `return m, err`, ofTurn},
	{"the output's tokens cost nothing", `[]*int64{m.Meta.InputTokens, m.Meta.OutputTokens}`, `[]*int64{m.Meta.InputTokens}`, ofTurn},
	{"a file that is held loses a reply", `if !errors.Is(err, chatctx.ErrLocked) || ctx.Err() != nil {`, `if true || ctx.Err() != nil {`, ofTurn},
	{"the provider is not asked for the size near the limit", `float64(req.Report.After) < askFrom*float64(limit)`, `float64(req.Report.After) > askFrom*float64(limit)`, ofTurn},

	// the window
	{"headroom is not kept free", `limit := float64(w.Budget) * (1 - w.Headroom)`, `limit := float64(w.Budget)`, ofDraft},
	{"a step clears less than is over", `return (over + unit - 1) / unit * unit`, `return over / unit * unit`, ofDraft},
	{"trim sends what does not fit", `enough = cleared >= over`, `enough = true`, ofDraft},
	{"trim parts a call from its result", `if reach < i { l.may[i] = false }`, `if reach+1 < i { l.may[i] = false }`, ofDraft},
	{"a pinned message may go", `l.stay[i] = m.Pinned || isSystem(m)`, `l.stay[i] = isSystem(m)`, ofDraft},
	{"prune takes what the model has not read", `if kept > s.o.PruneKeep && i < end {`, `if kept > s.o.PruneKeep {`, ofDraft},
	{"prune begins at the threshold", `if since <= s.o.PruneThreshold {`, `if since < s.o.PruneThreshold {`, ofDraft},
	{"compaction is due at the share and not over it", `float64(Used(w, d)) > o.CompactAt*float64(w.Budget)`, `float64(Used(w, d)) >= o.CompactAt*float64(w.Budget)`, ofDraft},
	{"a digest stands for other messages than it was made of", `if hashOf(behind[g]) != digests[g].Of ||`, `if`, ofDraft},
	{"a result is excluded without its call", `if partners[i] >= 0 { groups[partners[i]] = true } } } leaveOut(`, `} }
	leaveOut(`, ofDraft},
	{"an output that cannot be kept is put aside", `if after >= before || !s.keep(m, f.aside) {`, `if after >= before {`, ofDraft},

	// one step further
	{"a key counts on every branch", `if b == nil || b.ID != t.Target.ID {`, `if b == nil {`, ofStore},
	{"a key stands for other words", `if same, err := poolstore.Same(was, msgs[i]); err != nil || !same {`, `if _, err := poolstore.Same(was, msgs[i]); err != nil {`, ofStore},
	{"a receipt counts as a message", `if poolstore.Counts(m) { t.Rec.Messages++ }`, `t.Rec.Messages++`, ofStore},
	{"a decision about one call of a turn counts turns of the whole branch", `return before == all, err`, `return before >= all-1, err`, ofStore},
	{"arguments that an approval changed are not those that run", `if a.Rec.Effective != nil { return a.Rec.Effective } return a.Message.Calls[a.Index].Arguments`, `return a.Message.Calls[a.Index].Arguments`, ofRules},
	{"a file's task may go deeper than tasks here", `if task.MaxDepth <= 0 || task.MaxDepth > most {`, `if task.MaxDepth <= 0 {`, ofFiles},
	{"a denied call of a file that ran needs no decision", `case pool.Denied: return c.Execution == pool.NotRun`, `case pool.Denied:
		return true`, ofFiles},
	{"a result of a file answers a call that is open", `if waited && (grows || base.IsOpen(&rec)) {`, `if waited && grows && !base.IsOpen(&rec) {`, ofFiles},
	{"a file without news comes out of the trash", `if !news { return false, nil } res.Restored, res.Trashed = true, false`, `res.Restored, res.Trashed = true, false`, ofFiles},
	{"a request that the provider finds too large is made larger", `float64(req.Report.After) / float64(n)`, `float64(n) / float64(req.Report.After)`, ofTurn},
	{"nothing to compact is a failure", `if errors.Is(err, enhancer.ErrNothingToCompact) { return nil, nil }`, `if errors.Is(err, enhancer.ErrNothingToCompact) { return nil, err }`, ofTurn},
	{"arguments whose names differ only in case are sure", `if s.err != nil || s.twins {`, `if s.err != nil {`, ofRules},
	{"a deny of a tool goes by the case of its name", `truth(c.names.foldedText.MatchString(`, `truth(c.names.text.MatchString(`, ofRules},
	{"the cache ends before the last message", `d.Messages[len(d.Messages)-1].Cache = true`, `d.Messages[0].Cache = true`, ofDraft},
	{"a session's tokens lack what the cache had", `{&s.CacheRead, m.Meta.CacheRead}`, `{&s.CacheRead, m.Meta.CacheWrite}`, ofDraft},

	// what one door knows, every door knows: rules that all doors share, a bug each
	{"a store of before is never brought up", `if t.older = version; version < shortKeys {`, `if version < shortKeys {`, []string{"chatctx:TestKeptStores"}},
	{"an open program goes on at a newer format", `if version, t.err = Version(raw); t.err == nil`, `if version, _ = Version(raw); t.err == nil`, []string{"chatctx:TestAnOpenProgramStopsAtANewerFormat"}},
	{"a damaged newest page goes unsaid", `if t.err == nil && engine.Doubt(t.rw) {`, `if t.err != nil && engine.Doubt(t.rw) {`, []string{"chatctx:TestNewestChangeInDoubt"}},
	{"keys of later versions are dropped", `if len(m) == 0 { return nil } to := v.FieldByIndex(s.unknown)`, `if len(m) > 0 { return nil }
	to := v.FieldByIndex(s.unknown)`, []string{"internal/base:Unknown", "pool"}},
	{"a clock that is ahead ends a living claim", `if sameBoot(c) && c.PID > 0 && c.PID != os.Getpid() && c.Ticks != 0 && ticks() != 0 {`, `if c.Ticks != 0 && ticks() < 0 {`, []string{"internal/base:Claim"}},
	{"sh is read as bash alone", `sh       = bash | dash | busybox`, `sh       = bash`, []string{"chatctx/approval:TestEachShellReadsItsOwn"}},
	{"a file that a text writes is where the text began", `untold(name) == "" && (path.IsAbs(name) || !moves) && p.surely(name)`, `untold(name) == "" && p.surely(name)`, []string{"chatctx/approval:TestWrites"}},
	{"percent signs that are encoded twice pass", `(?i)%(25)*(2e|c0|e0%80|f0%80|u002e)`, `(?i)%(2e|c0|e0%80|f0%80|u002e)`, []string{"chatctx/approval:Paths"}},
	{"a tool of another folder is the one that was approved", `r.URL == other.URL && r.Dir == other.Dir &&`, `r.URL == other.URL &&`, []string{"chatctx:TestToolReplacedAfterApproval", "internal/base"}},
	{"a replaced tool runs on the old approval", `approval.Runs == nil || approval.Runs.Same(runs)`, `approval.Runs == nil || runs != nil`, []string{"chatctx:TestToolReplacedAfterApproval"}},
	{"a schema that is none is stored", `return CheckSchemas(t)`, `return nil`, []string{"chatctx/approval:TestSchemasByEveryDoor"}},
	{"a window that a server reports loses its doubt", `if !w.Sure { value += "?" }`, `if w.Tokens < 0 {
		value += "?"
	}`, []string{"chatctx:TestModelWindowIsKept"}},
	{"the index never hears of a lot", `if stamp[0] == 0 {`, `if false {`, []string{"chatctx:Index|Search"}},
	{"a message is not listed for the index", `return Wait(tx, at, DocOf(MessageDoc, ctx, m.ID))`, `return nil`, []string{"chatctx:TestIndexFollowsEveryDoor"}},
	{"a cut answer is a summary", `if a.Text, err = reply.Whole(); err == nil && q.Fits != nil {`, `if a.Text = reply.Text(); q.Fits != nil {`, []string{"chatctx/turn:Paid|Summar|Title", "internal/window:Whole|Fail|Cut|Unusable"}},
	{"what a digest cost is not stored as it comes", `return w.Keep(ctx, session, a.Paid)`, `return nil`, []string{"chatctx/turn:TestAFailureLosesNoDigest"}},
	{"a task's cut answer returns as whole", `e.Role == pool.Assistant && (err == nil || len(e.Calls) == 0) {`, `e.Role == pool.Assistant && err == nil {`, []string{"internal/cli:TestTalkScripts/partial"}},
	{"a reply that broke off is answered", `case said == CutShort || said == BrokenOff:`, `case said == CutShort:`, []string{"pool:TestOutcomeOf"}},
	{"words of thinking alone are an answer", `return p.Type != ThinkingPart && (p.Type != TextPart`, `return (p.Type != TextPart`, []string{"pool:TestOutcomeOf|TestWhole"}},
	{"a message that a summary does not tell of is lost", `marked[id] != base.Excluded && slices.Contains(d.Session.Apart, i+1))`, `marked[id] != base.Excluded && len(d.Session.Apart) < 0)`, []string{model, "internal/window:TestRequestHoldsTheBranch"}},
	{"a compaction begins a session whatever became of the others", `if e.Sessions != nil && journal.SameSessions(t.Target.Sessions, e.Sessions) {`, `if e.Sessions != nil {`, []string{model}},
	{"a compaction that failed begins a session", `|| len(p.Raw) == 0 || failedCompaction(p.Raw) {`, `|| len(p.Raw) == 0 {`, []string{"chatctx/turn:Compaction"}},
	{"another model reads a compaction", `return s.Provider == provider && adapter.Undated(s.Model) == model })`, `return s.Provider == provider && adapter.Undated(s.Model) >= "" && model != "" })`, []string{"chatctx/turn:Compaction"}},
	{"a compaction that ended is not told of", `t.noteSummary(record.SummaryChange{Branch: name, From: 1, To: told, Provider: was[i].Provider})`,
		`t.noteSummary(record.SummaryChange{Branch: name, From: told, To: 1, Provider: was[i].Provider})`, []string{"internal/cli:TestTalkScripts/compaction"}},
	{"a late result of a file goes to a model", `m.Kind, m.Unsent, g.late[m.ID] = pool.Late, true, true`, `m.Kind, m.Unsent, g.late[m.ID] = pool.Late, false, true`, []string{"chatctx/exchange:TestResultOfAFileAnswersNothing", model}},
	{"a purged conversation comes back", `if whole && !r.Purged {`, `if whole && r.Purged {`, []string{"chatctx/exchange:TestPurgedStaysAway"}},
	{"a statement has the name of another store's", `crc32.ChecksumIEEE([]byte(s.sql))`, `crc32.ChecksumIEEE([]byte(s.name))`, []string{"chatctx/kv/pgkv:TestStatementsOfOtherStoresHaveOtherNames"}},
	{"a purge that leaves nothing leaves earlier marks", `err = out.marks.Forget(tx)`, `err = nil`, []string{"chatctx/exchange:TestPurgeForgetsEarlierPurges"}},
	{"a purge leaves a hash of the words", `n.Words = [8]byte{} if first`, `if first`, []string{"chatctx/exchange:TestPurgeLeavesNoHashOfWords"}},
	{"a short text is known wherever it stands", `case short && before != (pool.Hash{}):`, `case short && len(s.Key) == 0:`, []string{"chatctx/exchange:TestShortTextsGoByTheirPlace"}},
	{"a redacted message comes back whole", `if kind == base.GoneRedacted && !r.Purged {`, `if kind == base.GoneRedacted && r.Purged {`, []string{"chatctx/exchange:TestPurgedStaysAway"}},
	{"a link beside the store is followed", `errors.Is(err, nolink.ErrLink) || errors.Is(err, errInTheWay)`, `errors.Is(err, nolink.ErrLink) && errors.Is(err, errInTheWay)`, []string{"chatctx/kv/boltkv", "internal/cli:TestScripts/links"}},
	{"a link in a file's place goes unnoticed", `if err != nil || info.Mode()&fs.ModeSymlink == 0 {`, `if err != nil || info.Mode()&fs.ModeSymlink != 0 {`, []string{"internal/nolink"}},
	{"what a living program uses is swept", `dead := known && host == machine() && !running(pid)`, `dead := known && host == machine()`, []string{"internal/leftover"}},
	{"tools read the environment under /proc", `if os.Getenv("CHATCTX_DUMPABLE") != "1" {`, `if os.Getenv("CHATCTX_DUMPABLE") == "1" {`, []string{"internal/cli:TestToolsCannotReadTheEnvironment"}},
	{"a file that is no text counts as searched", `r.blind[hash] = fileKind(data, mediaType)`, `_ = hash`, []string{"chatctx:Redact", "internal/cli:TestScripts/(encodings|redact)"}},
	{"bytes that are no characters are text", `&& !(t.set.strict() && strings.ContainsRune(t.Text, utf8.RuneError))`, ``, []string{"internal/charset"}},
	{"a member stands where its struct has it, whatever its tag says", `if f.after == "" ||`, `if true ||`, []string{"internal/codec"}},
	{"a branch is named as a step of a path", `return name == "." || name == ".."`, `return name == ".."`, []string{"chatctx/serve:TestStepsInPaths", "branch"}},
	{"arguments that an approval changed are not shown", `c.Effective, c.ChangedBy = rec.Effective, base.ChangedBy(&rec)`, `c.ChangedBy = base.ChangedBy(&rec)`, []string{"chatctx/serve:TestChangedCalls", "internal/cli:TestScripts/changed"}},
	{"a list goes by the clock of the last change", `return max(r.Listed, r.Updated)`, `return r.Updated`, []string{"chatctx:TestListGoesByOrderOfChange"}},
	{"a field of a request is set that the branch has", `row.Group == Own && row.Name != "app." && fromBranch[field]`, `row.Group != Own && fromBranch[field]`, []string{"internal/settings"}},
	// the order of a command line's words
	{"-- before the command hides the command", `case a == "--" && o.out.command() == nil && len(o.rest) > 0:`, `case false && a == "--":`, ofLine},
	{"what follows -- is read on as flags", `case a == "--": o.out.args, o.rest = append(o.out.args, o.rest...), nil case !looksLikeFlag(a): o.word(a)`,
		`case a == "--": case !looksLikeFlag(a): o.word(a)`, ofLine},
	{"a -- is an argument", `case a == "--": o.out.args, o.rest = append(o.out.args, o.rest...), nil case !looksLikeFlag(a): o.word(a)`,
		`case a == "--": o.out.args, o.rest = append(append(o.out.args, a), o.rest...), nil
case !looksLikeFlag(a): o.word(a)`, ofLine},
	{"- is a flag", `if len(a) < 2 || a[0] != '-' {`, `if len(a) < 1 || a[0] != '-' {`, ofLine},
	{"text that begins with a dash is a flag", `return !unicode.IsSpace(c)`, `return !unicode.IsSpace(c) || c == ' '`, ofLine},
	{"a long flag loses a letter", `err = o.long(a[2:])`, `err = o.long(a[3:])`, ofLine},
	{"an argument can name a subcommand", `sub != nil && len(o.out.args) == 0 {`, `sub != nil {`, ofLine},
	{"no argument is typed before a --", `o.out.bare = len(o.out.args) if`, `if`, ofLine},
	{"a word that is no command does not end the line", `o.out.help, o.rest = false, nil`, `o.out.help = false`, ofLine},
	{"help of a command that is none is printed", `o.out.help, o.rest = false, nil`, `o.rest = nil`, ofLine},
	{"before the command its flags are not known", `if c == nil { return sharedFlags(onBranch), 0 }`, `if c == nil { return nil, 0 }`, ofLine},
	{"a shared flag hides the command's own", `return slices.Concat(c.flags, sharedFlags(c.scope)), len(c.flags)`, `return slices.Concat(sharedFlags(c.scope), c.flags), len(c.flags)`, ofLine},
	{"a command takes the flags of every scope", `return slices.Concat(c.flags, sharedFlags(c.scope)), len(c.flags)`, `return slices.Concat(c.flags, sharedFlags(onBranch)), len(c.flags)`, ofLine},
	{"a short flag has no letter", `(name == f.name || name == f.short || slices.Contains(f.old, name))`, `(name == f.name || slices.Contains(f.old, name))`, ofLine},
	{"an own flag is a shared one", `return all[i], i < n`, `return all[i], i < n-1`, ofLine},
	{"--help is a flag that nobody knows", `if name == "help" { o.out.help = true return nil }`, ``, ofLine},
	{"-h is a flag that nobody knows", `if r == 'h' {`, `if r == 'H' {`, ofLine},
	{"-n5 has two flags", `if takesValue(f) || strings.HasPrefix(letters, "=") {`, `if strings.HasPrefix(letters, "=") {`, ofLine},
	{"-n=5 keeps the equals sign", `strings.TrimPrefix(letters, "="), letters != "")`, `letters, letters != "")`, ofLine},
	{"-n 5 has an empty value", `strings.TrimPrefix(letters, "="), letters != "")`, `strings.TrimPrefix(letters, "="), true)`, ofLine},
	{"a value stands for a flag that has one", `case has: case !takesValue(f):`, `case !takesValue(f):`, ofLine},
	{"a flag without a value is off", `value = "true"`, `value = "false"`, ofLine},
	{"the last flag has an empty value", `case len(o.rest) == 0: return usagef("--%s needs a value`, `case len(o.rest) > 99: return usagef("--%s needs a value`, ofLine},
	{"a flag of the command goes before the command", `if own { kept`, `if !own { kept`, ofLine},
	{"of a flag that stands there twice one is lost", `*kept = append(*kept, "--"+f.name+"="+value)`, `*kept = append((*kept)[:0], "--"+f.name+"="+value)`, ofLine},
}
