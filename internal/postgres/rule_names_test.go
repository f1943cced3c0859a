package postgres_test

import "testing"

func TestNamesOfRules(t *testing.T) {
	db, conn := inboxOf(t)
	if _, err := conn.Exec(t.Context(), `
insert into rule (rule_id, tenant_id, name, enabled, fire_mode, severity, scope, filter, title_template, message_template, targets,
                  interval_seconds, look_back_seconds, re_notify_minutes, for_duration_seconds, deleted_at)
select gen_random_uuid(), n.tenant, n.name, false, fire_mode, severity, scope, filter, title_template, message_template, targets,
       interval_seconds, look_back_seconds, re_notify_minutes, for_duration_seconds, n.deleted
from rule, (values ('default', 'Alpha', null), ('other', 'Beta', null), ('default', 'Gone', now())) n (tenant, name, deleted)`); err != nil {
		t.Fatal(err)
	}
	got, err := db.Rules().Names(t.Context(), tenant)
	if err != nil || len(got) != 2 || got[0].Name != "Alpha" || got[0].Enabled || got[1].ID != inboxRule() {
		t.Errorf("%+v, %v", got, err)
	}
}
