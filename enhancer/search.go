package enhancer

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"slices"

	"github.com/chatctx/chatctx/branch"
	"github.com/chatctx/chatctx/chatctx"
)

// Embedder turns texts into vectors, so that they can be found by meaning; package chatctx/turn has one.
type Embedder interface {
	// Name identifies the model, since vectors of different models cannot be compared.
	Name() string
	// Embed returns a vector for each text, all of one length.
	Embed(ctx context.Context, texts []string) ([][]float32, error)
}

// embedding is the vector of the summary with which a session begins, as the session keeps it.
type embedding struct {
	Model  string `json:"model"`
	Vector []byte `json:"vector"` // float32, little endian
}

const embeddingKey = "embedding"

// setEmbedding keeps the vector of the summary with which a session begins.
func setEmbedding(s *branch.Session, model string, vector []float32) {
	e := embedding{Model: model}
	for _, f := range vector {
		e.Vector = binary.LittleEndian.AppendUint32(e.Vector, math.Float32bits(f))
	}
	setData(s, embeddingKey, e)
}

// vectorOf returns the vector of a model that a session keeps, nil if there is none.
func vectorOf(s *branch.Session, model string) []float32 {
	var e embedding
	if json.Unmarshal(s.Data[embeddingKey], &e) != nil || e.Model != model {
		return nil
	}
	out := make([]float32, len(e.Vector)/4)
	for i := range out {
		out[i] = math.Float32frombits(binary.LittleEndian.Uint32(e.Vector[4*i:]))
	}
	return out
}

// cosine returns how near two vectors are, from -1 to 1; 0 if they cannot be compared.
func cosine(a, b []float32) float64 {
	if len(a) != len(b) {
		return 0
	}
	var dot, aa, bb float64
	for i := range a {
		x, y := float64(a[i]), float64(b[i])
		dot, aa, bb = dot+x*y, aa+x*x, bb+y*y
	}
	if aa == 0 || bb == 0 {
		return 0
	}
	return dot / math.Sqrt(aa*bb)
}

// Hit is a session that a search found.
type Hit struct {
	SessionInfo
	Score float64 // 1 means the same meaning, 0 nothing in common
}

// SearchSessions finds sessions by the meaning of their summaries, the nearest first. It uses the vectors that compactions kept, and asks e for those that are
// missing, without keeping them. It is a chatctx.ErrInvalid if e is nil.
func SearchSessions(ctx context.Context, c *chatctx.ChatContext, branchName string, o Options, e Embedder, query string) ([]Hit, error) {
	if e == nil {
		return nil, chatctx.Invalid("no embedder is given")
	}
	list, err := ListSessions(ctx, c, branchName, o)
	if err != nil {
		return nil, err
	}
	stored := make([]branch.Session, len(list))
	for i := range list {
		stored[i] = list[i].Session
	}
	texts := []string{query}
	vectors := make([][]float32, len(list))
	missing := []int{-1}
	for i := range list {
		if list[i].Summary == "" {
			continue
		}
		if vectors[i] = vectorOf(after(stored, i), e.Name()); vectors[i] == nil {
			texts, missing = append(texts, list[i].Summary), append(missing, i)
		}
	}
	made, err := e.Embed(ctx, texts)
	if err != nil {
		return nil, err
	}
	if len(made) != len(texts) {
		return nil, fmt.Errorf("the embedding endpoint gave %d vectors for %d texts", len(made), len(texts))
	}
	for k, i := range missing[1:] {
		vectors[i] = made[k+1]
	}
	var hits []Hit
	for i, v := range vectors {
		if v != nil {
			hits = append(hits, Hit{list[i], cosine(made[0], v)})
		}
	}
	slices.SortStableFunc(hits, func(a, b Hit) int {
		switch {
		case a.Score > b.Score:
			return -1
		case a.Score < b.Score:
			return 1
		}
		return 0
	})
	return hits, nil
}
