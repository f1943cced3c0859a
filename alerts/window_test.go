package alerts_test

import (
	"testing"
	"time"

	"tocsin/alerts"
)

func TestNext(t *testing.T) {
	now := time.Unix(1_795_244_520, 0)
	at := func(state alerts.State, since, notified time.Duration) *alerts.Open {
		return &alerts.Open{State: state, Since: now.Add(-since), NotifiedAt: now.Add(-notified)}
	}
	plain := alerts.Window{Threshold: 5}
	patient := alerts.Window{Threshold: 5, For: time.Minute}
	reminding := alerts.Window{Threshold: 5, ReNotify: time.Hour}
	for name, c := range map[string]struct {
		window   alerts.Window
		open     *alerts.Open
		observed int64
		want     alerts.Step
	}{
		"nothing, below":             {plain, nil, 4, alerts.Stay},
		"nothing, reached":           {plain, nil, 5, alerts.Raise},
		"nothing, reached, patient":  {patient, nil, 5, alerts.Wait},
		"pending, too early":         {patient, at(alerts.Pending, 59*time.Second, 0), 9, alerts.Stay},
		"pending, for long enough":   {patient, at(alerts.Pending, time.Minute, 0), 5, alerts.Fire},
		"pending, below":             {patient, at(alerts.Pending, time.Hour, 0), 4, alerts.Drop},
		"pending, no longer patient": {plain, at(alerts.Pending, 0, 0), 5, alerts.Fire},
		"firing, reached":            {plain, at(alerts.Firing, time.Hour, time.Hour), 5, alerts.Stay},
		"firing, below":              {plain, at(alerts.Firing, 0, 0), 4, alerts.Clear},
		"firing, reminder not due":   {reminding, at(alerts.Firing, 9*time.Hour, 59*time.Minute), 5, alerts.Stay},
		"firing, reminder due":       {reminding, at(alerts.Firing, 9*time.Hour, time.Hour), 5, alerts.Remind},
		"firing, below beats remind": {reminding, at(alerts.Firing, 9*time.Hour, time.Hour), 0, alerts.Clear},
		"acknowledged, no reminder":  {reminding, at(alerts.Acknowledged, 9*time.Hour, 9*time.Hour), 5, alerts.Stay},
		"acknowledged, below":        {plain, at(alerts.Acknowledged, 0, 0), 0, alerts.Clear},
		"resolved is not open":       {plain, at(alerts.Resolved, 0, 0), 9, alerts.Stay},
		"the database's clock leapt": {patient, at(alerts.Pending, -time.Hour, 0), 5, alerts.Stay},
	} {
		t.Run(name, func(t *testing.T) {
			if got := c.window.Next(c.open, c.observed, now); got != c.want {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}

func TestActions(t *testing.T) {
	for _, c := range []struct {
		from   alerts.State
		action alerts.Action
		to     alerts.State
		fails  bool
	}{
		{alerts.Firing, alerts.Acknowledge, alerts.Acknowledged, false},
		{alerts.Acknowledged, alerts.Acknowledge, alerts.Acknowledged, false},
		{alerts.Resolved, alerts.Acknowledge, alerts.Resolved, true},
		{alerts.Firing, alerts.Resolve, alerts.Resolved, false},
		{alerts.Acknowledged, alerts.Resolve, alerts.Resolved, false},
		{alerts.Resolved, alerts.Resolve, alerts.Resolved, false},
		{alerts.Pending, alerts.Acknowledge, alerts.Pending, true},
		{alerts.Pending, alerts.Resolve, alerts.Pending, true},
		{alerts.Firing, "dance", alerts.Firing, true},
	} {
		to, err := c.from.After(c.action)
		if to != c.to || (err != nil) != c.fails {
			t.Errorf("%s after %s = %s, %v", c.from, c.action, to, err)
		}
	}
}
