// Package slackalike is a stand-in for Slack's incoming webhooks, and for a bot of its Web API, on
// a developer's machine. It checks messages as Slack does, shows them as Slack would, and
// misbehaves on request.
//
// A request to /services/T…/B…/… is checked in this order: a fault that was requested, whether the
// webhook exists, its rate, its payload. The answer has the status and the body that Slack
// documents. The exact problem, which Slack does not reveal, is stored with the request and shown
// on the page.
//
// A bot calls /api/chat.postMessage and /api/chat.update, and is checked in the same way. Its
// answers are JSON, and changed messages are shown changed. A button of its message that is pressed
// on the page is sent to the app, with Slack's signature.
//
// Every request is recorded, accepted or not, with its headers and body: the newest in memory and,
// if a journal is given, in a file that the next start reads. A message with a webhook-id that was
// accepted before is a duplicate. It is accepted again, as Slack would do, marked and counted. If
// the journal cannot be written, this is logged and costs only the record, never an answer.
//
// Documented behaviour of Slack is copied, with the sources next to the limits. Other choices are
// named as such.
//
// The server is for loopback: it has no authentication. Its page needs nothing else, has a strict
// content security policy, and treats all received content as untrusted.
package slackalike
