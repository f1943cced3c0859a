package slack_test

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	slackgo "github.com/slack-go/slack"

	"tocsin/alerts"
	"tocsin/notify"
	"tocsin/notify/slack"
)

const secret = "0123456789abcdef0123456789abcdef"

// TestSignAgreesWithSlacksClient lets another implementation check what Sign makes.
func TestSignAgreesWithSlacksClient(t *testing.T) {
	stamp, body := strconv.FormatInt(time.Now().Unix(), 10), "payload=%7B%7D"
	header := http.Header{}
	header.Set(slack.HeaderTimestamp, stamp)
	header.Set(slack.HeaderSignature, slack.Sign(secret, stamp, []byte(body)))
	verifier, err := slackgo.NewSecretsVerifier(header, secret)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := verifier.Write([]byte(body)); err != nil {
		t.Fatal(err)
	}
	if err := verifier.Ensure(); err != nil {
		t.Error(err)
	}
}

func TestVerify(t *testing.T) {
	now := time.Unix(1_795_244_520, 0)
	stamp := "1795244520"
	body := []byte("payload=x")
	good := slack.Proof{Timestamp: stamp, Signature: slack.Sign(secret, stamp, body)}
	for name, c := range map[string]struct {
		secret string
		proof  slack.Proof
		body   string
		at     time.Time
		want   bool
	}{
		"as signed":        {secret, good, "payload=x", now, true},
		"late":             {secret, good, "payload=x", now.Add(slack.SignatureWindow), true},
		"too late":         {secret, good, "payload=x", now.Add(slack.SignatureWindow + time.Second), false},
		"early":            {secret, good, "payload=x", now.Add(-slack.SignatureWindow), true},
		"too early":        {secret, good, "payload=x", now.Add(-slack.SignatureWindow - time.Second), false},
		"another body":     {secret, good, "payload=y", now, false},
		"another secret":   {strings.Repeat("f", 32), good, "payload=x", now, false},
		"no secret":        {"", slack.Proof{Timestamp: stamp, Signature: slack.Sign("", stamp, body)}, "payload=x", now, false},
		"no signature":     {secret, slack.Proof{Timestamp: stamp}, "payload=x", now, false},
		"no timestamp":     {secret, slack.Proof{Signature: slack.Sign(secret, "", body)}, "payload=x", now, false},
		"another stamp":    {secret, slack.Proof{Timestamp: "1795244521", Signature: good.Signature}, "payload=x", now, false},
		"out of int range": {secret, slack.Proof{Timestamp: "9223372036854775808", Signature: good.Signature}, "payload=x", now, false},
		"far in the past":  {secret, slack.Proof{Timestamp: "-9223372036854775808", Signature: slack.Sign(secret, "-9223372036854775808", body)}, "payload=x", now, false},
	} {
		t.Run(name, func(t *testing.T) {
			if err := slack.Verify(c.secret, c.proof, []byte(c.body), c.at); (err == nil) != c.want {
				t.Errorf("err = %v, want proven = %v", err, c.want)
			}
		})
	}
}

func TestReadPress(t *testing.T) {
	const id = "0199a1b2-0000-7000-8000-000000000001"
	read := func(payload string) (slack.Press, bool, error) {
		return slack.ReadPress([]byte(url.Values{"payload": {payload}}.Encode()))
	}
	got, pressed, err := read(`{"type":"block_actions","user":{"id":"U1","username":"ann\n<!channel>"},"channel":{"id":"C9"},"message":{"ts":"9.9"},
		"container":{"channel_id":"C1","message_ts":"1.2"},"actions":[{"action_id":"x"},{"action_id":"tocsin_acknowledge","value":"` + id + `"}]}`)
	want := slack.Press{
		AlertID: uuid.MustParse(id), Action: alerts.Acknowledge, Actor: "slack:ann <!channel>", At: notify.Posted{Channel: "C1", TS: "1.2"},
	}
	if err != nil || !pressed || got != want {
		t.Errorf("%+v, %v, %v; want %+v", got, pressed, err, want)
	}
	got, pressed, err = read(`{"type":"block_actions","user":{"id":"U1"},"channel":{"id":"C9"},"message":{"ts":"9.9"},"actions":[{"action_id":"tocsin_resolve","value":"` + id + `"}]}`)
	if err != nil || !pressed || got.Actor != "slack:U1" || got.Action != alerts.Resolve || got.At != (notify.Posted{Channel: "C9", TS: "9.9"}) {
		t.Errorf("%+v, %v, %v", got, pressed, err)
	}
	if got, _, err = read(`{"user":{"username":"` + strings.Repeat("é", 5000) + `"},"type":"block_actions"}`); err != nil || len(got.Actor) > 250 {
		t.Errorf("a long name gave %d bytes, %v", len(got.Actor), err)
	}
}

func TestStateOfABodyOfOnesOwn(t *testing.T) {
	a := usual()
	a.Buttons, a.State, a.ChangedBy = true, alerts.Acknowledged, "ann"
	own := `{"blocks":[{"type":"section","text":{"type":"mrkdwn","text":"x"}}],"text":"x","metadata":{"n":1}}`
	got := string(slack.WithState([]byte(own), &a))
	if err := slack.Valid([]byte(got)); err != nil || !strings.Contains(got, "Acknowledged by *ann*") ||
		!strings.Contains(got, `"tocsin_resolve"`) || !strings.Contains(got, `"metadata":{"n":1}`) {
		t.Errorf("%v: %s", err, got)
	}
	for _, body := range []string{
		`{"text":"x"}`, `[]`,
		`{"text":"x","blocks":[` + strings.TrimSuffix(strings.Repeat(`{"type":"divider"},`, 50), ",") + `]}`,
	} {
		if got := string(slack.WithState([]byte(body), &a)); got != body {
			t.Errorf("%s became %s", body, got)
		}
	}
	a.Buttons, a.State = false, alerts.Firing
	if got := string(slack.WithState([]byte(own), &a)); got != own {
		t.Errorf("nothing to add gave %s", got)
	}
}
