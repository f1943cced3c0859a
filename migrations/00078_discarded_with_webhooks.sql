-- +goose Up

-- Messages to webhooks that were deleted are discarded: nobody can send them again, and
-- they are no dead letters.
update settlement s
set status = 'DISCARDED', discarded_by = 'Tocsin'
from notification n join webhook w using (webhook_id)
where n.notification_id = s.notification_id and w.deleted_at is not null and s.status in ('FAILED', 'EXHAUSTED');
