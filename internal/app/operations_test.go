package app_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"tocsin/api"
	"tocsin/internal/access"
	"tocsin/internal/app"
)

// operation is what these tests read from the API's description.
type operation struct {
	ID      string      `json:"operationId"`
	Role    access.Role `json:"x-tocsin-role"`
	Changes *bool       `json:"x-tocsin-changes"`

	method, path string
}

// operations returns every operation in the API's description.
func operations(tb testing.TB) []operation {
	tb.Helper()
	text, err := api.GetSpecJSON()
	if err != nil {
		tb.Fatal(err)
	}
	var document struct {
		Paths map[string]map[string]json.RawMessage `json:"paths"`
	}
	if err := json.Unmarshal(text, &document); err != nil {
		tb.Fatal(err)
	}
	var found []operation
	for path, members := range document.Paths {
		for method, raw := range members {
			if method == "parameters" {
				continue
			}
			op := operation{method: strings.ToUpper(method), path: path}
			if err := json.Unmarshal(raw, &op); err != nil {
				tb.Fatal(err)
			}
			found = append(found, op)
		}
	}
	slices.SortFunc(found, func(a, b operation) int { return strings.Compare(a.ID, b.ID) })
	return found
}

func (o operation) mutates() bool {
	return o.method != http.MethodGet && (o.Changes == nil || *o.Changes)
}

func TestEveryOperationSaysWhoMayCallIt(t *testing.T) {
	t.Parallel()
	for _, op := range operations(t) {
		if op.Role != access.Anyone && !slices.Contains(access.Roles(), op.Role) {
			t.Errorf("%s %s has x-tocsin-role %q; want viewer, operator, editor, admin or anyone", op.method, op.path, op.Role)
		}
	}
}

// TestRolesHoldForEveryOperation calls every operation without a sign-in, and
// with a session and a token of each role.
func TestRolesHoldForEveryOperation(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	base, _ := w.guarded()
	admin := newCaller(t, base).signIn(adminEmail, adminPassword)
	callers := map[string]*caller{}
	for _, role := range access.Roles() {
		email, password := string(role)+"@example.com", "the password of "+string(role)
		admin.must(http.StatusCreated, http.MethodPost, "/users", map[string]any{"email": email, "name": string(role), "role": role, "password": password})
		callers["session "+string(role)] = newCaller(t, base).signIn(email, password)
		callers["token "+string(role)] = admin.withToken(string(role), role)
	}
	stranger := newCaller(t, base)
	for _, op := range operations(t) {
		path := strings.ReplaceAll(op.path, "{id}", w.newID().String())
		got := stranger.do(op.method, path, nil).status
		if op.Role == access.Anyone {
			if got == http.StatusForbidden {
				t.Errorf("%s without a sign-in: %d", op.ID, got)
			}
			continue
		}
		if got != http.StatusUnauthorized {
			t.Errorf("%s without a sign-in: %d", op.ID, got)
		}
		for name, c := range callers {
			_, role, _ := strings.Cut(name, " ")
			got := c.do(op.method, path, nil)
			refused := got.status == http.StatusUnauthorized || got.status == http.StatusForbidden
			if refused == access.Role(role).Allows(op.Role) || got.status >= http.StatusInternalServerError {
				t.Errorf("%s by %s: %d, and it needs %s", op.ID, name, got.status, op.Role)
			}
			if refused && !strings.Contains(got.text("detail"), string(op.Role)) {
				t.Errorf("%s by %s does not say which role it needs: %s", op.ID, name, got.text("detail"))
			}
		}
	}
}

// try is a successful call of an operation.
type try struct {
	path   string
	body   any
	header []string
	// by defaults to the world's administrator.
	by *caller
	// actor is the user in the audit log, if it is not by.
	actor string
}

// stage is a world with one object of each kind, and a call of each operation that changes
// something.
type stage struct {
	*world
	base  string
	admin *caller
	ids   map[string]string
}

func newStage(tb testing.TB) *stage {
	tb.Helper()
	w := newWorld(tb)
	base, _ := w.guarded(func(o *app.Options) { o.Roles = app.Roles() })
	s := &stage{world: w, base: base, ids: map[string]string{}}
	s.admin = newCaller(tb, base).signIn(adminEmail, adminPassword).withToken("stage", access.Admin)
	hook := w.webhook("hook")
	rule := w.rule(hook)
	s.ids["webhooks"], s.ids["rules"] = hook.String(), rule.ID.String()
	w.fail(w.ch.Now(tb), "a", "b")
	w.until("two alerts are there", func() bool { return len(w.column(alertIDs)) == 2 })
	s.ids["alerts"] = w.column(`select alert_id::text from alert limit 1`)[0]
	s.ids["alerts/actions"] = s.admin.must(http.StatusOK, http.MethodPost, "/alerts/acknowledge", map[string]any{"ids": []string{s.ids["alerts"]}}).text("actionId")
	s.ids["notifications"] = w.column(`select notification_id::text from notification limit 1`)[0]
	s.ids["silences"] = s.admin.must(http.StatusCreated, http.MethodPost, "/silences", map[string]any{
		"name": "stage", "match": map[string]any{"severities": []string{"INFO"}}, "endsAt": time.Now().Add(time.Hour).UTC().Format(time.RFC3339),
	}).text("id")
	s.ids["alerts/issue/notes"] = s.note()
	s.ids["views"] = s.view()
	s.ids["replays"] = s.admin.must(http.StatusCreated, http.MethodPost, "/rules/"+rule.ID.String()+"/replays", lastHour("NONE")).text("id")
	s.ids["users"] = s.user()
	s.ids["tokens"] = s.token()
	return s
}

// view returns a saved view that belongs to the administrator.
func (s *stage) view() string {
	s.t.Helper()
	return s.admin.must(http.StatusOK, http.MethodPost, "/views", map[string]any{"name": s.newID().String(), "search": "app=orders"}).text("id")
}

// lastHour is the time range of a replay and, if given, its messages.
func lastHour(messages string) map[string]any {
	now := time.Now().UTC()
	body := map[string]any{"from": now.Add(-time.Hour).Format(time.RFC3339), "to": now.Format(time.RFC3339)}
	if messages != "" {
		body["messages"] = messages
	}
	return body
}

// noteText returns the request body of a note on the issue of the stage's alert.
func (s *stage) noteText() map[string]any {
	s.t.Helper()
	key, err := url.ParseQuery(strings.TrimPrefix(s.issue(), "?"))
	if err != nil {
		s.t.Fatal(err)
	}
	return map[string]any{
		"application": key.Get("application"), "route": key.Get("route"), "signature": key.Get("signature"), "text": "Ask the ERP team.",
	}
}

func (s *stage) note() string {
	s.t.Helper()
	return s.admin.must(http.StatusCreated, http.MethodPost, "/alerts/issue/notes", s.noteText()).text("id")
}

func (s *stage) user() string {
	s.t.Helper()
	return s.admin.must(http.StatusCreated, http.MethodPost, "/users", map[string]any{
		"email": s.newID().String() + "@example.com", "name": "Somebody", "role": "viewer", "password": "somebody's password",
	}).text("id")
}

func (s *stage) token() string {
	s.t.Helper()
	made := s.admin.must(http.StatusCreated, http.MethodPost, "/tokens", map[string]any{"name": s.newID().String(), "role": "viewer"})
	id, _ := made.body["token"].(map[string]any)["id"].(string)
	return id
}

func (s *stage) emailOf(user string) string {
	s.t.Helper()
	return s.admin.must(http.StatusOK, http.MethodGet, "/users/"+user, nil).text("email")
}

func (s *stage) tag(path string) string {
	s.t.Helper()
	return s.admin.must(http.StatusOK, http.MethodGet, path, nil).header.Get("ETag")
}

// alert returns a firing alert.
func (s *stage) alert() string {
	s.t.Helper()
	id := s.newID().String()
	s.fail(s.ch.Now(s.t), id)
	found := func() []string { return s.column(`select alert_id::text from alert where execution_id = $1`, id) }
	s.until("the alert is there", func() bool { return len(found()) > 0 })
	return found()[0]
}

// given returns a notification that has run out of attempts.
func (s *stage) given() string {
	s.t.Helper()
	alert := s.alert()
	s.until("its notification is settled", func() bool {
		return len(s.column(`select settlement.notification_id::text from settlement join notification using (notification_id) where alert_id = $1::text::uuid`, alert)) > 0
	})
	s.exec(`update settlement set status = 'EXHAUSTED' where notification_id in (select notification_id from notification where alert_id = $1::text::uuid)`, alert)
	return s.column(`select notification_id::text from notification where alert_id = $1::text::uuid`, alert)[0]
}

// tries returns a call of each operation that is no GET, by its id. A new operation needs a line
// here.
func (s *stage) tries() map[string]func() try {
	rule := func(name string) map[string]any {
		return map[string]any{"name": name, "fireMode": "PER_EXCHANGE", "severity": "INFO", "webhookIds": []string{s.ids["webhooks"]}}
	}
	newRule := func() string {
		return s.admin.must(http.StatusCreated, http.MethodPost, "/rules", rule(s.newID().String())).text("id")
	}
	newWebhook := func(name string) map[string]any {
		return map[string]any{"name": name, "kind": "generic", "url": s.receiver.url + "/secret-path"}
	}
	someWebhook := func() string {
		return "/webhooks/" + s.admin.must(http.StatusCreated, http.MethodPost, "/webhooks", newWebhook(s.newID().String())).text("id")
	}
	newSilence := func(name string) map[string]any {
		return map[string]any{
			"name": name, "match": map[string]any{"severities": []string{"INFO"}}, "endsAt": time.Now().Add(time.Hour).UTC().Format(time.RFC3339),
		}
	}
	someSilence := func() string {
		return "/silences/" + s.admin.must(http.StatusCreated, http.MethodPost, "/silences", newSilence(s.newID().String())).text("id")
	}
	person := func() (*caller, string) {
		email := s.emailOf(s.user())
		return newCaller(s.t, s.base).signIn(email, "somebody's password"), email
	}
	return map[string]func() try{
		"createSilence": func() try { return try{path: "/silences", body: newSilence(s.newID().String())} },
		"previewSilence": func() try {
			return try{path: "/silences/preview", body: map[string]any{"match": map[string]any{"severities": []string{"INFO"}}}}
		},
		"updateSilence": func() try {
			path := someSilence()
			return try{path: path, body: newSilence(s.newID().String()), header: []string{"If-Match", s.tag(path)}}
		},
		"endSilence": func() try { return try{path: someSilence() + "/end"} },
		"updateRoutingPolicy": func() try {
			body := map[string]any{"routes": []map[string]any{{"name": s.newID().String(), "webhookIds": []string{s.ids["webhooks"]}}}}
			return try{path: "/routing", body: body, header: []string{"If-Match", s.tag("/routing")}}
		},
		"updateTeams": func() try {
			body := map[string]any{"teams": []map[string]any{{"name": s.newID().String(), "members": []string{adminEmail}}}}
			return try{path: "/teams", body: body, header: []string{"If-Match", s.tag("/teams")}}
		},
		"testRouting": func() try { return try{path: "/routing/test", body: map[string]any{"severity": "INFO"}} },
		"createRule":  func() try { return try{path: "/rules", body: rule(s.newID().String())} },
		"updateRule": func() try {
			path := "/rules/" + newRule()
			return try{path: path, body: map[string]any{"name": "another name", "fireMode": "PER_EXCHANGE", "severity": "INFO"}, header: []string{"If-Match", s.tag(path)}}
		},
		"applyRules": func() try {
			return try{path: "/rules/apply", body: map[string]any{"rules": []any{rule(s.newID().String())}}}
		},
		"enableRule":  func() try { return try{path: "/rules/" + newRule() + "/enable"} },
		"disableRule": func() try { return try{path: "/rules/" + newRule() + "/disable"} },
		"retryRule":   func() try { return try{path: "/rules/" + newRule() + "/retry"} },
		"startReplay": func() try {
			return try{path: "/rules/" + newRule() + "/replays", body: lastHour("EACH")}
		},
		"previewReplay": func() try {
			return try{path: "/rules/" + newRule() + "/replays/preview", body: lastHour("")}
		},
		"cancelReplay": func() try {
			begun := s.admin.must(http.StatusCreated, http.MethodPost, "/rules/"+newRule()+"/replays", lastHour("DIGEST"))
			return try{path: "/replays/" + begun.text("id") + "/cancel"}
		},
		"deleteRule":       func() try { return try{path: "/rules/" + newRule()} },
		"reconcileRule":    func() try { return try{path: "/rules/" + s.ids["rules"] + "/reconcile"} },
		"createWebhook":    func() try { return try{path: "/webhooks", body: newWebhook(s.newID().String())} },
		"acknowledgeAlert": func() try { return try{path: "/alerts/" + s.alert() + "/acknowledge"} },
		"resolveAlert":     func() try { return try{path: "/alerts/" + s.alert() + "/resolve"} },
		"snoozeAlert": func() try {
			return try{path: "/alerts/" + s.alert() + "/snooze", body: map[string]any{"until": time.Now().Add(time.Hour).UTC().Format(time.RFC3339)}}
		},
		"unsnoozeAlert": func() try { return try{path: "/alerts/" + s.alert() + "/unsnooze"} },
		"assignAlert": func() try {
			return try{path: "/alerts/" + s.alert() + "/assign", body: map[string]any{"assignee": adminEmail}}
		},
		"assignAlerts": func() try {
			return try{path: "/alerts/assign", body: map[string]any{"ids": []string{s.alert()}, "assignee": adminEmail}}
		},
		"updateWebhook": func() try {
			path := someWebhook()
			return try{path: path, body: map[string]any{"name": s.newID().String()}, header: []string{"If-Match", s.tag(path)}}
		},
		"rotateWebhookSecret": func() try { return try{path: someWebhook() + "/rotate-secret", body: map[string]any{}} },
		"retireWebhookSecret": func() try { return try{path: someWebhook() + "/retire-secret"} },
		"enableWebhook":       func() try { return try{path: someWebhook() + "/enable"} },
		"disableWebhook":      func() try { return try{path: someWebhook() + "/disable"} },
		"testWebhook":         func() try { return try{path: someWebhook() + "/test"} },
		"deleteWebhook":       func() try { return try{path: someWebhook()} },
		"acknowledgeAlerts":   func() try { return try{path: "/alerts/acknowledge", body: map[string]any{"ids": []string{s.alert()}}} },
		"resolveAlerts":       func() try { return try{path: "/alerts/resolve", body: map[string]any{"ids": []string{s.alert()}}} },
		"readAlerts":          func() try { return try{path: "/alerts/read", body: map[string]any{"ids": []string{s.alert()}}} },
		"undoAlertAction": func() try {
			done := s.admin.must(http.StatusOK, http.MethodPost, "/alerts/acknowledge", map[string]any{"ids": []string{s.alert()}})
			return try{path: "/alerts/actions/" + done.text("actionId") + "/undo"}
		},
		"createIssueNote": func() try { return try{path: "/alerts/issue/notes", body: s.noteText()} },
		"createAlertNote": func() try {
			return try{path: "/alerts/" + s.ids["alerts"] + "/notes", body: map[string]any{"text": "Ask the ERP team."}}
		},
		"deleteIssueNote": func() try { return try{path: "/alerts/issue/notes/" + s.note()} },
		"saveView": func() try {
			return try{path: "/views", body: map[string]any{"name": "Orders", "search": "", "shared": true}}
		},
		"deleteView":        func() try { return try{path: "/views/" + s.view()} },
		"retryNotification": func() try { return try{path: "/notifications/" + s.given() + "/retry"} },
		"duplicateRule":     func() try { return try{path: "/rules/" + newRule() + "/duplicate"} },
		"testRule":          func() try { return try{path: "/rules/" + newRule() + "/test", body: map[string]any{}} },
		"previewRule":       func() try { return try{path: "/rules/" + newRule() + "/preview"} },
		"previewRuleEdit": func() try {
			return try{path: "/rules/" + newRule() + "/preview/difference", body: map[string]any{"definition": rule("edited")}}
		},
		"previewRuleDefinition": func() try { return try{path: "/rules/preview", body: map[string]any{"definition": rule("n")}} },
		"previewReceiver":       func() try { return try{path: "/receivers/pagerduty/preview", body: map[string]any{}} },
		"previewTemplates":      func() try { return try{path: "/templates/preview", body: map[string]any{}} },
		"retryNotifications": func() try {
			return try{path: "/notifications/retry", body: map[string]any{"ids": []string{s.given()}}}
		},
		"discardNotification": func() try { return try{path: "/notifications/" + s.given() + "/discard"} },
		"discardNotifications": func() try {
			return try{path: "/notifications/discard", body: map[string]any{"ids": []string{s.given()}}}
		},
		"createSession": func() try {
			email := s.emailOf(s.user())
			return try{path: "/session", body: map[string]any{"email": email, "password": "somebody's password"}, by: newCaller(s.t, s.base), actor: email}
		},
		"deleteSession": func() try {
			c, email := person()
			return try{path: "/session", by: c, actor: email}
		},
		"beginDisplay": func() try {
			made := s.admin.must(http.StatusCreated, http.MethodPost, "/tokens", map[string]any{"name": s.newID().String(), "role": "viewer"})
			return try{path: "/session/display", body: map[string]any{"token": made.text("secret")}, by: newCaller(s.t, s.base)}
		},
		"redeemLink": func() try {
			user := s.user()
			_, secret, _ := strings.Cut(s.admin.must(http.StatusOK, http.MethodPost, "/users/"+user+"/link", nil).text("url"), "#")
			return try{path: "/session/link", body: map[string]any{"secret": secret}, by: newCaller(s.t, s.base), actor: s.emailOf(user)}
		},
		"changePassword": func() try {
			c, email := person()
			body := map[string]any{"currentPassword": "somebody's password", "newPassword": "somebody's other password"}
			return try{path: "/me/password", body: body, by: c, actor: email}
		},
		"createUser": func() try {
			return try{path: "/users", body: map[string]any{"email": s.newID().String() + "@example.com", "name": "N", "role": "viewer"}}
		},
		"updateUser": func() try {
			path := "/users/" + s.user()
			return try{path: path, body: map[string]any{"name": "N", "role": "editor", "disabled": true}, header: []string{"If-Match", s.tag(path)}}
		},
		"deleteUser": func() try { return try{path: "/users/" + s.user()} },
		"setUserPassword": func() try {
			return try{path: "/users/" + s.user() + "/password", body: map[string]any{"password": "another password"}}
		},
		"createUserLink": func() try { return try{path: "/users/" + s.user() + "/link"} },
		"createToken": func() try {
			return try{path: "/tokens", body: map[string]any{"name": s.newID().String(), "role": "viewer"}}
		},
		"revokeToken": func() try { return try{path: "/tokens/" + s.token()} },
	}
}

// TestEveryChangeIsInTheAuditLog makes each operation change something.
func TestEveryChangeIsInTheAuditLog(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	tries := s.tries()
	for _, op := range operations(t) {
		if op.method == http.MethodGet || op.ID == "setUp" { // which TestTheFirstAdministratorIsMadeOnce does
			continue
		}
		prepare, known := tries[op.ID]
		if !known {
			t.Errorf("%s is not tried: add it to tries", op.ID)
			continue
		}
		call := prepare()
		if call.by == nil {
			call.by, call.actor = s.admin, "token stage"
		}
		before := s.column(`select coalesce(max(audit_id), 0)::text from audit`)[0]
		if got := call.by.do(op.method, call.path, call.body, call.header...); got.status >= http.StatusMultipleChoices {
			t.Errorf("%s: %d %v", op.ID, got.status, got.body)
			continue
		}
		audited := s.column(`select operation || ' by ' || actor from audit where audit_id > $1::text::bigint and actor <> 'tocsin'`, before) // a snooze may end meanwhile
		if !op.mutates() {
			if len(audited) > 0 {
				t.Errorf("%s changes nothing, and the audit log has %q", op.ID, audited)
			}
			continue
		}
		want := op.ID + " by " + call.actor
		if !slices.Contains(audited, want) {
			t.Errorf("the audit log has %q, want %q", audited, want)
		}
	}
	for _, secret := range []string{"secret-path", "somebody's password", "argon2id", "tcn_", "whsec"} {
		if found := s.column(`select a::text from audit a where position($1 in a::text) > 0`, secret); len(found) > 0 {
			t.Errorf("the audit log shows %q: %s", secret, found[0])
		}
	}
}

// TestAnotherTenantSeesNothing calls every operation on an object with the rights of another
// tenant's administrator.
func TestAnotherTenantSeesNothing(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	tries := s.tries()
	elsewhere := s.elsewhere()
	for _, op := range operations(t) {
		before, _, about := strings.Cut(op.path, "{id}")
		if !about {
			continue
		}
		collection := strings.Trim(before, "/")
		id, known := s.ids[collection]
		if op.Role == access.Anyone {
			continue
		}
		if !known {
			t.Errorf("%s is about things of which the stage has none: add one to newStage", op.ID)
			continue
		}
		var body any
		var header []string
		if prepare, found := tries[op.ID]; found {
			call := prepare()
			body, header = call.body, call.header
		}
		got := elsewhere.do(op.method, strings.ReplaceAll(op.path, "{id}", id), body, header...)
		if got.status != http.StatusNotFound {
			t.Errorf("%s of another tenant's thing: %d %v", op.ID, got.status, got.body)
		}
	}
	s.byIDs(elsewhere, tries)
	delete(s.ids, "alerts/actions") // which is no list
	delete(s.ids, "replays")        // which are listed by rule
	for _, list := range slices.Sorted(maps.Keys(s.ids)) {
		path := "/" + list
		if list == "alerts/issue/notes" {
			path += s.issue()
		}
		items, _ := elsewhere.must(http.StatusOK, http.MethodGet, path, nil).body["items"].([]any)
		for _, item := range items {
			if text := fmt.Sprint(item); strings.Contains(text, s.ids[list]) {
				t.Errorf("%s of another tenant are listed: %s", list, text)
			}
		}
	}
	items, _ := elsewhere.must(http.StatusOK, http.MethodGet, "/audit", nil).body["items"].([]any)
	for _, item := range items {
		if text := fmt.Sprint(item); strings.Contains(text, "stage") {
			t.Errorf("another tenant's audit log: %s", text)
		}
	}
}

// byIDs calls every operation that takes ids with those of another tenant's objects: nothing
// changes.
func (s *stage) byIDs(elsewhere *caller, tries map[string]func() try) {
	s.t.Helper()
	tried := 0
	for _, op := range operations(s.t) {
		prepare, known := tries[op.ID]
		if !known || strings.Contains(op.path, "{id}") {
			continue
		}
		call := prepare()
		if body, ok := call.body.(map[string]any); !ok || body["ids"] == nil {
			continue
		}
		tried++
		const things = `select a::text from alert a union all select n::text from settlement n where n.status = 'EXHAUSTED'
			union all select h::text from alert_assignment h union all select r::text from alert_read r order by 1`
		before := s.column(things)
		got := elsewhere.do(op.method, call.path, call.body, call.header...)
		if after := s.column(things); !slices.Equal(before, after) {
			s.t.Errorf("%s with another tenant's ids: %d %v, and things changed", op.ID, got.status, got.body)
		}
	}
	if tried < 6 {
		s.t.Errorf("%d operations with ids were tried, want those of alerts and notifications", tried)
	}
}

// elsewhere returns the administrator of another tenant.
func (s *stage) elsewhere() *caller {
	s.t.Helper()
	ctx := access.As(s.t.Context(), access.Actor{Tenant: "elsewhere", Kind: "program", Name: "test"})
	secret, hint := access.NewToken()
	_, err := s.db.Tokens().Create(ctx, access.Token{TenantID: "elsewhere", Name: "other", Role: access.Admin, Hint: hint, CreatedBy: "test"}, access.HashOf(secret))
	if err != nil {
		s.t.Fatal(err)
	}
	c := newCaller(s.t, s.base)
	c.token = secret
	return c
}
