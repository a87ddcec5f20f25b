package window

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"slices"

	"github.com/chatctx/chatctx/branch"
	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/internal/base"
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

// embed asks for the vectors of texts. It is an error if the answer does not have one for each, all as long as those that the sessions keep of the model: vectors of
// different lengths cannot be compared.
func embed(ctx context.Context, e Embedder, texts []string, sessions []branch.Session) ([][]float32, error) {
	made, err := e.Embed(ctx, texts)
	if err != nil {
		return nil, err
	}
	if len(made) != len(texts) {
		return nil, fmt.Errorf("the embedding endpoint gave %d vectors for %d texts", len(made), len(texts))
	}
	kept := 0
	for i := range sessions {
		kept = max(kept, len(vectorOf(&sessions[i], e.Name())))
	}
	for i, v := range made {
		switch {
		case len(v) == 0:
			return nil, fmt.Errorf("the embedding endpoint gave an empty vector for text %d of %d", i+1, len(texts))
		case kept > 0 && len(v) != kept:
			return nil, fmt.Errorf("the embedding endpoint gave a vector of %d numbers, and those kept of %s have %d: set embedding.model to the name of the model that answers now", len(v), e.Name(), kept)
		case len(v) != len(made[0]):
			return nil, fmt.Errorf("the embedding endpoint gave vectors of %d and of %d numbers", len(made[0]), len(v))
		case slices.ContainsFunc(v, func(f float32) bool { return math.IsNaN(float64(f)) || math.IsInf(float64(f), 0) }):
			return nil, fmt.Errorf("the embedding endpoint gave a vector that is not of numbers for text %d of %d", i+1, len(texts))
		}
	}
	return made, nil
}

// cosine returns how near two vectors of one length are, from -1 to 1; 0 if one of them has no direction.
func cosine(a, b []float32) float64 {
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
		return nil, base.Invalid("no embedder is given")
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
	made, err := embed(ctx, e, texts, stored)
	if err != nil {
		return nil, err
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
