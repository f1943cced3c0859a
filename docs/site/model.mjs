// What an installation needs, by the costs on the page "Plan for scale". model.test.mjs compares it with what was measured,
// and the page with it.

// Seconds of one core, of all processes together.
const pass = 0.033 // of a partition that has something new, each second
const alert = 0.00003
const message = 0.000132
const windowQuery = 0.02 // for window rules, in each partition
const windowExchange = 0.000_000_9 // which a query for window rules counts: with many of them, this is more
const windowRule = 0.000_006_5

// Kilobytes in Postgres, with indexes.
const alertKept = 3
const recordKept = 1.5 // of a message, as long as its alert
const contentsKept = 2 // of a message
// Half as much again for dead rows, WAL and a migration.
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
 * windowCores returns the cores that window rules use: of so many queries in each of some partitions, every so many
 * seconds, over windows that hold so many exchanges in all partitions together. It is an upper bound: a query for few
 * rules reads less.
 */
export function windowCores({ rules, queries, partitions, exchanges, everySeconds }) {
  return (queries * Math.max(partitions * windowQuery, exchanges * windowExchange) + rules * windowRule) / everySeconds
}

/** disk returns gigabytes in Postgres, with nothing to spare: of each kind of rows, and how many rows there are. */
export function disk({ alertsPerDay, messagesPerAlert, openAlerts, alertDays, contentDays }) {
  const of = (rows, kilobytes) => ({ rows, gigabytes: (rows * kilobytes) / 1e6 })
  return {
    alerts: of(alertsPerDay * alertDays, alertKept),
    records: of(alertsPerDay * alertDays * messagesPerAlert, recordKept),
    contents: of(alertsPerDay * contentDays * messagesPerAlert, contentsKept),
    open: of(openAlerts, alertKept + messagesPerAlert * recordKept),
  }
}

/**
 * plan returns what an installation needs. storm is how many alerts a second it has to bear for a while, each with its
 * messages. openAlerts are those that stay open for longer than the alerts of alertDays.
 */
export function plan(needs) {
  const { exchangesPerDay, alertsPerDay, messagesPerAlert, tenants, channels, storm } = needs
  const { windowRules, windowQueries, windowMinutes, windowSeconds } = needs
  const exchangesPerSecond = (exchangesPerDay / day) * peak
  const alertsPerSecond = (alertsPerDay / day) * peak
  // A partition per tenant is never needed, and fewer have something new than there are exchanges.
  const partitions = exchangesPerDay >= 500_000_000 || tenants > 500 ? 16 : 8
  const busy = Math.min(partitions, tenants, Math.max(1, exchangesPerSecond))
  const exchangesInWindow = exchangesPerSecond * windowMinutes * 60
  const windows =
    windowRules === 0
      ? 0
      : windowCores({
          rules: windowRules,
          queries: Math.min(windowQueries, windowRules),
          partitions: Math.min(partitions, tenants, windowRules),
          exchanges: exchangesInWindow,
          everySeconds: windowSeconds,
        })
  const kept = disk(needs)
  return {
    exchangesPerSecond,
    exchangesInWindow,
    partitions,
    windowCores: windows,
    cores: windows + cores({ partitions: busy, alertsPerSecond, messagesPerSecond: alertsPerSecond * messagesPerAlert }),
    coresInStorm: windows + cores({ partitions: busy, alertsPerSecond: storm, messagesPerSecond: storm * messagesPerAlert }),
    disk: kept,
    gigabytes: spare * Object.values(kept).reduce((sum, { gigabytes }) => sum + gigabytes, 0),
    // How much of the day channels of Slack are busy with messages, if nothing is digested.
    slackShare: (alertsPerDay * messagesPerAlert) / (channels * slackRate * day),
  }
}
