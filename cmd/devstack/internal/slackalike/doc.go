// Package slackalike stands in for Slack's incoming webhooks, and for a bot of its
// Web API, on a developer's machine: it judges messages as Slack does, shows them as Slack would show
// them, and misbehaves on request.
//
// A request to /services/T…/B…/… is judged in this order: a fault that was
// asked for, whether the webhook exists, its rate, its payload. The answer has
// the status and the body that Slack documents; what exactly was wrong, which
// Slack keeps to itself, is noted beside the request and shown on the page.
//
// A bot calls /api/chat.postMessage and /api/chat.update, and is judged alike; its
// answers are JSON, and what it changes is shown changed. A button of its message,
// pressed on the page, is sent to the app behind it, signed as Slack signs.
//
// Every request is recorded, accepted or not, with its headers and body: the
// newest in memory and, where a journal is given, in a file that the next start
// reads. A webhook-id that was accepted before is a duplicate; it is accepted
// again, as Slack would, marked and counted. A journal that cannot be written is
// logged and costs the record alone, never an answer.
//
// Where Slack's behaviour is documented, it is copied; the sources are named
// beside the limits. Where it is not, the choice is named as one.
//
// The server is for loopback: it has no authentication. Its page is whole in
// itself, runs under a strict content security policy, and treats all that it
// received as hostile.
package slackalike
