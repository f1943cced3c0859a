// Run by `make verify`: node --test docs/site
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { cores, plan } from './model.mjs'

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
    measured('L5', `10,000 tenants, ${replicas} replicas, CPU of a second with 1,000 new exchanges, at most`),
  )
  agrees(second, figures.sort((a, b) => a - b)[1] / 1000, 'L5')
})

test('an alert costs what B1 measured', () => {
  const one = cores({ partitions: 0, alertsPerSecond: 1, messagesPerSecond: 0 })
  agrees(one * 1e6, measured('B1', 'CPU of a commit, all processes'), 'B1')
})

test('the installations on the page are those of the model', () => {
  const page = readFileSync(new URL('../scale.md', import.meta.url), 'utf8')
  const row = (name) => {
    const line = page.split('\n').find((line) => line.startsWith(`| ${name} |`))
    assert.ok(line, `docs/scale.md has no row "${name}"`)
    return line.split('|').slice(2, -1).map((cell) => cell.trim())
  }
  const disk = row('disk by the formula')
  for (const [i, alertsPerDay] of [1_000, 50_000, 500_000].entries()) {
    const { gigabytes } = plan({ exchangesPerDay: 1e6, alertsPerDay, messagesPerAlert: 1, tenants: 1, channels: 1, storm: 0 })
    const told = Number.parseFloat(disk[i])
    // The page leaves the spare out.
    assert.ok(Math.abs(gigabytes / 1.5 - told) / told < 0.1, `${disk[i]} on the page, ${gigabytes / 1.5} GB by the model`)
  }
})
