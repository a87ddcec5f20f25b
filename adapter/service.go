package adapter

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/chatctx/chatctx/adapter/wire"
	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/internal/settings"
)

// Service is a provider that programs can name: its adapter, and what reaches it. NewService makes one.
type Service struct {
	Name    string // the value of the setting provider; settings that begin with it and a dot are the provider's own
	Adapter Adapter[Body]
	Client  func(wire.Options) (wire.Client, error)
	Place   wire.Place // its address and its key
	// Own says in a few words what the provider's own settings are, for lists: "a field of Acme's chat, as it is".
	Own string
	// Implied, if not nil, reports whether a model of this name, in lower case, is the provider's where nobody names a provider.
	Implied func(model string) bool
}

// NewService returns the Service of an adapter and a function that makes clients, of any types. Its name is that of the place.
func NewService[B Body, C wire.Client](place wire.Place, a Adapter[B], client func(wire.Options) (C, error)) Service {
	return Service{Name: place.Provider, Place: place, Adapter: untyped[B]{a}, Client: func(o wire.Options) (wire.Client, error) {
		c, err := client(o)
		if err != nil {
			return nil, err // and not a nil pointer
		}
		return c, nil
	}}
}

// untyped is an Adapter whose bodies have no type of their own.
type untyped[B Body] struct{ Adapter[B] }

// Adapt implements Adapter. With an error the body is nil, and not a nil pointer.
func (u untyped[B]) Adapt(d *chatctx.Draft) (Body, error) {
	b, err := u.Adapter.Adapt(d)
	if err != nil {
		return nil, err
	}
	return b, nil
}

// services are the registered ones.
var services struct {
	sync.RWMutex
	list []Service
}

// Register makes a provider known to ServiceOf, and with it to package turn, and its name to the setting provider. A package calls it mostly in its init function,
// and a program imports that package for its effect, as with drivers of database/sql; package all registers the providers of this module. It panics if the name is
// taken, or if the name, the adapter or the client is missing.
func Register(s Service) {
	if s.Name == "" || s.Adapter == nil || s.Client == nil || strings.ContainsAny(s.Name, "./ \t\n") {
		panic(fmt.Sprintf("adapter: Register of the provider %q without a plain name, an adapter or a client", s.Name))
	}
	services.Lock()
	defer services.Unlock()
	if slices.ContainsFunc(services.list, func(other Service) bool { return other.Name == s.Name }) {
		panic(fmt.Sprintf("adapter: the provider %q is registered twice", s.Name))
	}
	services.list = append(services.list, s)
	settings.AddProvider(s.Name, s.Own)
}

// Services returns the registered providers, in the order of the setting provider.
func Services() []Service {
	services.RLock()
	defer services.RUnlock()
	list := slices.Clone(services.list)
	order := settings.Providers()
	slices.SortStableFunc(list, func(a, b Service) int { return slices.Index(order, a.Name) - slices.Index(order, b.Name) })
	return list
}

// ServiceOf returns the registered provider of a name. The error is an ErrProvider that lists those that there are.
func ServiceOf(name string) (Service, error) {
	all := Services()
	for _, s := range all {
		if s.Name == name {
			return s, nil
		}
	}
	return Service{}, fmt.Errorf("%w %q: use one of %s", ErrProvider, name, Names())
}

// Names returns the names of the registered providers, for a person: "openai, anthropic".
func Names() string {
	var names []string
	for _, s := range Services() {
		names = append(names, s.Name)
	}
	return strings.Join(names, ", ")
}
