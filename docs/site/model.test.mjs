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

test('a message costs what B2 measured', () => {
  const one = cores({ partitions: 0, alertsPerSecond: 0, messagesPerSecond: 1 })
  agrees(one * 1e6, measured('B2', 'CPU of a message, drain'), 'B2')
})

test('the formula on the page is that of the model', () => {
  const page = readFileSync(new URL('../scale.md', import.meta.url), 'utf8')
  const stated = /^cores = ([\d.]+) × partitions with new exchanges \+ ([\d.]+) × alerts per second \+ ([\d.]+) ×/m.exec(page)
  assert.ok(stated, 'docs/scale.md has no formula of cores')
  const nothing = { partitions: 0, alertsPerSecond: 0, messagesPerSecond: 0 }
  const units = ['partitions', 'alertsPerSecond', 'messagesPerSecond'].map((unit) => cores({ ...nothing, [unit]: 1 }))
  assert.deepEqual(stated.slice(1).map(Number), units)
})

test('the installations on the page are those of the model', () => {
  const page = readFileSync(new URL('../scale.md', import.meta.url), 'utf8')
  const row = (name) => {
    const line = page.split('\n').find((line) => line.startsWith(`| ${name} |`))
    assert.ok(line, `docs/scale.md has no row "${name}"`)
    return line.split('|').slice(2, -1).map((cell) => cell.trim())
  }
  const storm = row('cores by the formula, in a storm of 1,000 alerts and messages a second')
  const partitions = [[1], [8], [16, 32]] // of the three installations
  for (const [i, numbers] of partitions.entries()) {
    const units = numbers.map((partitions) => cores({ partitions, alertsPerSecond: 1000, messagesPerSecond: 1000 }).toFixed(1))
    assert.ok(storm[i].startsWith(units.join(' to ')), `${storm[i]} on the page, ${units.join(' to ')} by the model`)
  }
  const disk = row('disk by the formula')
  for (const [i, alertsPerDay] of [1_000, 50_000, 500_000].entries()) {
    const { gigabytes } = plan({ exchangesPerDay: 1e6, alertsPerDay, messagesPerAlert: 1, tenants: 1, channels: 1, storm: 0 })
    const stated = Number.parseFloat(disk[i])
    // The page leaves the spare out.
    assert.ok(Math.abs(gigabytes / 1.5 - stated) / stated < 0.1, `${disk[i]} on the page, ${gigabytes / 1.5} GB by the model`)
  }
})
