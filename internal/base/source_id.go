package base

import (
	"crypto/sha256"
	"encoding/binary"

	"github.com/google/uuid"

	"github.com/chatctx/chatctx/pool"
)

// SourceID returns the id of what comes from another program: of a node of a conversation, or of the conversation where node is "". The same source has the
// same id in every store. at is the record's own time, and stands in front, so that the pool is filled in its order; 0: none.
func SourceID(at pool.Time, format, conversation, node string) pool.ID {
	sum := sha256.Sum256(SourceKey(format, conversation, node))
	var id pool.ID
	copy(id[:], sum[:16])
	var ms [8]byte
	binary.BigEndian.PutUint64(ms[:], uint64(at.Time().UnixMilli()))
	if at <= 0 {
		ms = [8]byte{}
	}
	copy(id[:6], ms[2:])
	id[6] = 0x80 | id[6]&0x0f // version 8
	id[8] = 0x80 | id[8]&0x3f
	return id
}

// SourceContext returns the id of another program's conversation. Its time is the one that its own id names, if that is a UUID of version 7: a hook knows
// no other, and both it and the importer have to come to the same id.
func SourceContext(format, conversation string) pool.ID {
	at := pool.Time(0)
	if id, err := uuid.Parse(conversation); err == nil && id.Version() == 7 {
		at = pool.Time(binary.BigEndian.Uint64(append([]byte{0, 0}, id[:6]...))) * 1000
	}
	return SourceID(at, format, conversation, "")
}
