// What an installation needs, by the costs on the page "Plan for scale". model.test.mjs compares it with what was measured.

// Seconds of one core, of all processes together.
const pass = 0.047 // of a partition that has something new, each second
const alert = 0.000045
const message = 0.000208

// Gigabytes in Postgres, with indexes, kept for the default retention; half as much again for dead rows, WAL and a migration.
const alertKept = 0.27 / 1000
const messageKept = 0.2 / 1000
const spare = 1.5

// The busiest hour has three times the mean.
const peak = 3
const day = 86_400

// What a channel of Slack takes, each second.
const slackRate = 1

/** cores returns the processor cores in use where each of some partitions has something new every second. */
export function cores({ partitions, alertsPerSecond, messagesPerSecond }) {
  return partitions * pass + alertsPerSecond * alert + messagesPerSecond * message
}

/**
 * plan returns what an installation needs. storm is how many alerts a second it has to bear for a while, each with its
 * messages.
 */
export function plan({ exchangesPerDay, alertsPerDay, messagesPerAlert, tenants, channels, storm }) {
  const exchangesPerSecond = (exchangesPerDay / day) * peak
  const alertsPerSecond = (alertsPerDay / day) * peak
  // A partition per tenant is never needed, and fewer have something new than there are exchanges.
  const partitions = exchangesPerDay >= 500_000_000 || tenants > 500 ? 16 : 8
  const busy = Math.min(partitions, tenants, Math.max(1, exchangesPerSecond))
  const usual = cores({ partitions: busy, alertsPerSecond, messagesPerSecond: alertsPerSecond * messagesPerAlert })
  const inStorm = cores({ partitions: busy, alertsPerSecond: storm, messagesPerSecond: storm * messagesPerAlert })
  return {
    exchangesPerSecond,
    partitions,
    cores: usual,
    coresInStorm: inStorm,
    gigabytes: alertsPerDay * (alertKept + messagesPerAlert * messageKept) * spare,
    // How much of the day channels of Slack are busy with messages, if nothing is digested.
    slackShare: (alertsPerDay * messagesPerAlert) / (channels * slackRate * day),
  }
}
