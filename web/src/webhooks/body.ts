/** A body to begin with. It must contain the alert's id, so that a receiver can recognise repeats. */
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
