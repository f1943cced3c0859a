// Run by `make verify`: node --test docs/site
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { cores, disk, plan, windowCores } from './model.mjs'

const { results } = JSON.parse(readFileSync(new URL('../performance/results.json', import.meta.url), 'utf8'))

function measured(id, name) {
  const figure = results.find((result) => result.id === id)?.figures.find((figure) => figure.name === name)
  assert.ok(figure, `docs/performance/results.json has no figure "${name}" of ${id}`)
  return figure.median
}

// Machines differ and vary: a model that is right within a third tells which machine to buy.
function agrees(estimate, figure, what) {
  assert.ok(estimate > figure / 1.34 && estimate < figure * 1.34, `${what}: ${estimate} by the model, ${figure} measured`)
}

test('a pass with 1,000 alerts in one partition is what B7 measured', () => {
  const second = cores({ partitions: 1, alertsPerSecond: 1000, messagesPerSecond: 0 })
  agrees(second, measured('B7', '1 rules, CPU of a pass') / 1000, 'B7')
})

test('a second with 1,000 alerts in 8 partitions is what L5 measured', () => {
  const second = cores({ partitions: 8, alertsPerSecond: 1000, messagesPerSecond: 0 })
  // However many replicas share the partitions. Each figure is of a few seconds, and varies by a third from run to run.
  const figures = [1, 2, 4].map((replicas) =>
    measured('L5', `10,000 tenants, ${replicas} replicas, CPU of a second with 1,000 new exchanges, maximum`),
  )
  agrees(second, figures.sort((a, b) => a - b)[1] / 1000, 'L5')
})

test('an alert costs what B1 measured', () => {
  const one = cores({ partitions: 0, alertsPerSecond: 1, messagesPerSecond: 0 })
  agrees(one * 1e6, measured('B1', 'CPU of a commit, all processes'), 'B1')
})

test('a message costs what B2 measured', () => {
  const one = cores({ partitions: 0, alertsPerSecond: 0, messagesPerSecond: 1 })
  agrees(one * 1e6, measured('B2', 'CPU of a message, drain'), 'B2')
})

// What window rules add to a pass: how much processor time and how many queries, in a single partition.
const windowed = [
  { id: 'B7', rules: 400, plain: '1 rules', mixed: '2,000 rules of all kinds', queries: 'queries of ClickHouse' },
  { id: 'B7', rules: 2000, plain: '1 rules', mixed: '10,000 rules of all kinds', queries: 'queries of ClickHouse' },
  { id: 'L5', rules: 4, plain: '1 tenants', mixed: '1 tenants, rules of all kinds', queries: 'queries of a pass' },
  { id: 'L5', rules: 400, plain: '100 tenants', mixed: '100 tenants, rules of all kinds', queries: 'queries of a pass' },
  { id: 'L5', rules: 40_000, plain: '10,000 tenants', mixed: '10,000 tenants, rules of all kinds', queries: 'queries of a pass' },
]
for (const { id, rules, plain, mixed, queries } of windowed) {
  test(`window rules add what ${id} measured with ${mixed}`, () => {
    const more = (figure) => measured(id, `${mixed}, ${figure}`) - measured(id, `${plain}, ${figure}`)
    const second = windowCores({ rules, queries: more(queries), partitions: 1, exchanges: 0, everySeconds: 1 })
    agrees(second, more('CPU of a pass') / 1000, `${id}, ${mixed}`)
  })
}

test('a query over many exchanges costs what docs/performance.md says of a tally', () => {
  const page = readFileSync(new URL('../performance.md', import.meta.url), 'utf8')
  const tally = /an hour of ([\d,]+) failed exchanges[^.]*[\d.]+ of a core\. One tally of these exchanges takes ClickHouse ([\d.]+) s/.exec(page)
  assert.ok(tally, 'docs/performance.md does not say what a tally takes')
  const exchanges = Number(tally[1].replaceAll(',', ''))
  agrees(windowCores({ rules: 0, queries: 1, partitions: 1, exchanges, everySeconds: 1 }), Number(tally[2]), 'a tally')
})

const page = readFileSync(new URL('../scale.md', import.meta.url), 'utf8')

function rowOf(name) {
  const line = page.split('\n').find((line) => line.startsWith(`| ${name} |`))
  assert.ok(line, `docs/scale.md has no row "${name}"`)
  return line.split('|').slice(2, -1).map((cell) => cell.trim())
}

function onPage(pattern, what) {
  const stated = pattern.exec(page)
  assert.ok(stated, `docs/scale.md has no ${what}`)
  return stated.slice(1).map((number) => Number(number.replaceAll(',', '')))
}

// Sums of decimal fractions.
function same(stated, byModel, what) {
  assert.equal(stated.length, byModel.length, what)
  stated.forEach((number, i) => assert.ok(Math.abs(number - byModel[i]) < 1e-9, `${what}: ${number} on the page, ${byModel[i]} by the model`))
}

// What one of each costs.
const nothing = { partitions: 0, alertsPerSecond: 0, messagesPerSecond: 0 }
const [onePass, oneAlert, oneMessage] = Object.keys(nothing).map((unit) => cores({ ...nothing, [unit]: 1 }))
const noWindows = { rules: 0, queries: 1, partitions: 0, exchanges: 0, everySeconds: 1 }
const oneQuery = windowCores({ ...noWindows, partitions: 1 })
const oneExchange = windowCores({ ...noWindows, exchanges: 1 })
const oneRule = windowCores({ ...noWindows, rules: 1 })
const oneDay = { alertsPerDay: 1, messagesPerAlert: 1, openAlerts: 0, alertDays: 1, contentDays: 1 }
const kilobytes = Object.fromEntries(Object.entries(disk(oneDay)).map(([kind, { gigabytes }]) => [kind, gigabytes * 1e6]))

test('the formulas on the page are those of the model', () => {
  same(
    onPage(/^cores = ([\d.]+) × partitions with new exchanges \+ ([\d.]+) × alerts per second \+ ([\d.]+) × messages per second$/m, 'formula of cores'),
    [onePass, oneAlert, oneMessage],
    'cores',
  )
  same(
    onPage(/^more cores = \(queries × max\(([\d.]+) × partitions, ([\d.]+) × exchanges in a window\) \+ ([\d.]+) × window rules\) \/ /m, 'formula of window rules'),
    [oneQuery, oneExchange, oneRule],
    'window rules',
  )
  same(
    onPage(/^gigabytes = alerts per day × \(([\d.]+) \+ messages per alert × ([\d.]+)\) \/ 1,000$/m, 'formula of disk'),
    [90 * kilobytes.alerts / 1000, (90 * kilobytes.records + 30 * kilobytes.contents) / 1000],
    'disk',
  )
})

test('the units on the page are those of the model', () => {
  same(onPage(/^\| a pass over a partition that has something new \| ([\d.]+) ms of one core \|/m, 'cost of a pass'), [onePass * 1e3], 'a pass')
  same(onPage(/^\| an alert: evaluated and committed with its message \| [\d.]+ to ([\d.]+) µs \|/m, 'cost of an alert'), [oneAlert * 1e6], 'an alert')
  same(onPage(/^\| a message: claimed, sent, recorded \| ([\d.]+) µs,/m, 'cost of a message'), [oneMessage * 1e6], 'a message')
  same(onPage(/^\| a query for window rules, in each partition \| ([\d.]+) ms of one core \|/m, 'cost of a query'), [oneQuery * 1e3], 'a query')
  same(onPage(/^\| an exchange in a window of which there are many, for each query \| ([\d.]+) µs/m, 'cost of an exchange in a window'), [oneExchange * 1e6], 'an exchange')
  same(onPage(/^\| a window rule, each time \| ([\d.]+) µs \|/m, 'cost of a window rule'), [oneRule * 1e6], 'a window rule')
  same(onPage(/^\| an alert in Postgres, with indexes \| ([\d.]+) kB \|/m, 'size of an alert'), [kilobytes.alerts], 'an alert')
  same(
    onPage(/^\| a message in Postgres: the record, and what was sent \| ([\d.]+) kB and ([\d.]+) kB \|/m, 'size of a message'),
    [kilobytes.records, kilobytes.contents],
    'a message',
  )
})

// The page rounds to two digits.
function states(cell, byModel, what) {
  const stated = Number.parseFloat(cell)
  assert.ok(Math.abs(byModel - stated) <= stated * 0.1, `${what}: ${cell} on the page, ${byModel} by the model`)
}

test('the installations on the page are those of the model', () => {
  const storm = rowOf('cores by the formula, in a storm of 1,000 alerts and messages a second')
  const partitions = [[1], [8], [16, 32]] // of the three installations
  for (const [i, numbers] of partitions.entries()) {
    const units = numbers.map((partitions) => cores({ partitions, alertsPerSecond: 1000, messagesPerSecond: 1000 }).toFixed(1))
    assert.ok(storm[i].startsWith(units.join(' to ')), `${storm[i]} on the page, ${units.join(' to ')} by the model`)
  }
  const often = rowOf('more cores for 20, 200 and 2,000 window rules: four queries a second, over five minutes')
  const seldom = rowOf('the same, every ten seconds')
  for (const [i, [exchangesPerSecond, rules, partitions]] of [[35, 20, 1], [3500, 200, 8], [35_000, 2000, 16]].entries()) {
    const windows = { rules, queries: 4, partitions, exchanges: exchangesPerSecond * 300 }
    states(often[i], windowCores({ ...windows, everySeconds: 1 }), 'window rules every second')
    states(seldom[i], windowCores({ ...windows, everySeconds: 10 }), 'window rules every ten seconds')
  }
  const kept = rowOf('disk by the formula')
  const open = rowOf('open alerts, at most')
  const openKept = rowOf('disk of the open alerts, and the record of a message for each')
  for (const [i, alertsPerDay] of [1_000, 50_000, 500_000].entries()) {
    const openAlerts = Number(open[i].replaceAll(',', ''))
    const rows = disk({ alertsPerDay, messagesPerAlert: 1, openAlerts, alertDays: 90, contentDays: 30 })
    states(kept[i], rows.alerts.gigabytes + rows.records.gigabytes + rows.contents.gigabytes, 'disk')
    states(openKept[i], rows.open.gigabytes, 'disk of open alerts')
  }
})

test('a plan has the window rules and the open alerts in its sums', () => {
  const needs = {
    exchangesPerDay: 1e8, alertsPerDay: 50_000, messagesPerAlert: 2, tenants: 100, channels: 10, storm: 1000, openAlerts: 0,
    alertDays: 90, contentDays: 30, windowRules: 0, windowQueries: 4, windowMinutes: 5, windowSeconds: 1,
  }
  const without = plan(needs)
  assert.equal(without.windowCores, 0)
  const windows = plan({ ...needs, windowRules: 200 })
  assert.ok(windows.windowCores > 3)
  same([windows.cores - without.cores, windows.coresInStorm - without.coresInStorm], [windows.windowCores, windows.windowCores], 'window rules')
  const open = plan({ ...needs, openAlerts: 1e7 })
  same([open.gigabytes - without.gigabytes], [1.5 * 60], 'open alerts') // 3 kB, and 1.5 kB for each of two messages
  same([plan({ ...needs, alertDays: 45, contentDays: 15 }).gigabytes], [without.gigabytes / 2], 'retention')
})

test('ten times the history costs a pass what B8 measured', () => {
  const factor = measured('B8', 'time(10,000,000 exchanges) over time(1,000,000)').toFixed(1)
  assert.equal(rowOf('ten times the history')[0], `× ${factor} per pass`)
})
