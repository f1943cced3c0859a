package api_test

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"

	"tocsin/api"
	"tocsin/internal/access"
	"tocsin/internal/fault"
)

// viewMemory stores the views of one tenant.
type viewMemory struct{ kept []api.ViewRecord }

func (m *viewMemory) List(_ context.Context, _, actor string) ([]api.ViewRecord, error) {
	seen := slices.DeleteFunc(slices.Clone(m.kept), func(v api.ViewRecord) bool { return v.Owner != actor && !v.Shared })
	slices.SortFunc(seen, func(a, b api.ViewRecord) int { return cmp.Compare(a.Name, b.Name) })
	return seen, nil
}

func (m *viewMemory) Get(ctx context.Context, tenant, actor string, id uuid.UUID) (api.ViewRecord, error) {
	seen, err := m.List(ctx, tenant, actor)
	for _, v := range seen {
		if v.ID == id {
			return v, err
		}
	}
	return api.ViewRecord{}, fault.New(fault.NotFound, "no such view")
}

func (m *viewMemory) Save(_ context.Context, _ string, v api.ViewRecord) (api.ViewRecord, error) {
	v.ID, v.UpdatedAt = uuid.New(), instant()
	m.kept = append(m.kept, v)
	return v, nil
}

func (m *viewMemory) Delete(_ context.Context, _ string, id uuid.UUID) error {
	m.kept = slices.DeleteFunc(m.kept, func(v api.ViewRecord) bool { return v.ID == id })
	return nil
}

const viewsPath = "/api/v1/views"

func TestViewsAreOnesOwnOrShared(t *testing.T) {
	var who api.Identity
	b := newBench(t, func(o *api.Options) { o.Identify = func(*http.Request) (api.Identity, error) { return who, nil } })
	as := func(actor string, role access.Role) { who = api.Identity{Tenant: "acme", Actor: actor, Role: role} }
	names := func() string {
		list := into[api.ViewList](b.do("GET", viewsPath, "").want(200))
		var said []string
		for _, v := range list.Items {
			text := v.Name + " by " + v.Owner
			if v.Own {
				text += ", own"
			}
			if v.Shared {
				text += ", shared"
			}
			said = append(said, text)
		}
		return strings.Join(said, "; ")
	}

	as("eve", access.Viewer)
	own := into[api.View](b.do("POST", viewsPath, `{"name":" Mine ","search":"app=orders"}`).want(200))
	if own.Name != "Mine" || own.Search != "app=orders" || own.Owner != "eve" || !own.Own || own.Shared || !own.UpdatedAt.Equal(instant()) {
		t.Errorf("%+v", own)
	}
	b.do("POST", viewsPath, `{"name":"All","search":"","shared":true}`).problem(403, "forbidden")
	as("ada", access.Operator)
	shared := into[api.View](b.do("POST", viewsPath, `{"name":"All","search":"","shared":true}`).want(200))
	if got, want := names(), "All by ada, own, shared"; got != want {
		t.Errorf("ada sees %q, want %q", got, want)
	}
	b.do("DELETE", viewsPath+"/"+own.ID.String(), "").problem(404, "not_found")
	as("eve", access.Editor)
	if got, want := names(), "All by ada, shared; Mine by eve, own"; got != want {
		t.Errorf("eve sees %q, want %q", got, want)
	}
	b.do("DELETE", viewsPath+"/"+shared.ID.String(), "").problem(403, "forbidden")
	b.do("DELETE", viewsPath+"/"+own.ID.String(), "").want(204)
	b.do("DELETE", viewsPath+"/"+own.ID.String(), "").problem(404, "not_found")
	as("root", access.Admin)
	b.do("DELETE", viewsPath+"/"+shared.ID.String(), "").want(204)
	if len(b.views.kept) != 0 {
		t.Errorf("kept %+v", b.views.kept)
	}
}

func TestAViewNeedsANameAndAQuery(t *testing.T) {
	b := newBench(t)
	for name, body := range map[string]string{
		"no name":           `{"search":""}`,
		"blank name":        `{"name":"  ","search":""}`,
		"long name":         `{"name":"` + strings.Repeat("ä", 61) + `","search":""}`,
		"long query":        `{"name":"a","search":"` + strings.Repeat("a", 8001) + `"}`,
		"a question mark":   `{"name":"a","search":"?app=orders"}`,
		"a zero byte":       `{"name":"a","search":"app=\u0000"}`,
		"an unknown member": `{"name":"a","search":"","owner":"bo"}`,
	} {
		t.Run(name, func(*testing.T) { b.do("POST", viewsPath, body).problem(400, "invalid") })
	}
	if len(b.views.kept) != 0 {
		t.Errorf("saved: %+v", b.views.kept)
	}
	b.do("POST", viewsPath, `{"name":"`+strings.Repeat("ä", 60)+`","search":"`+strings.Repeat("a", 8000)+`"}`).want(200)
}
