/** A body to begin with. The alert's id has to be in it, so that a receiver can tell a repeat. */
export const example = `{
  "id": "{{alert.id}}",
  "reason": "{{alert.reason}}",
  "severity": "{{alert.severity}}",
  "title": "{{alert.title}}",
  "message": "{{alert.message}}",
  "url": "{{alert.url}}",
  "exchange": {
    "application": "{{exchange.application}}",
    "route": "{{exchange.route}}",
    "executionId": "{{exchange.executionId}}"
  }
}
`;
