// Checks the specification: types, tests, and the random simulator with fixed seeds. It fails where a
// promise breaks, and where none breaks although a guard is taken away.
import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';

const quint = (...args) =>
  new Promise((resolve) => {
    const child = spawn('node_modules/.bin/quint', args, { stdio: ['ignore', 'pipe', 'pipe'] });
    let output = '';
    child.stdout.on('data', (text) => (output += text));
    child.stderr.on('data', (text) => (output += text));
    child.on('close', (status) => resolve({ status, output }));
  });

// What each step says when it is as it should be, or throws.
const typecheck = (file) => async () => {
  const { status, output } = await quint('typecheck', file);
  if (status !== 0) throw new Error(`${file} has no valid types:\n${output}`);
  return `${file}: types`;
};

const test = (file, main) => async () => {
  const { status, output } = await quint('test', file, `--main=${main}`, '--backend=typescript', '--max-samples=1');
  const expected = readFileSync(file, 'utf8').match(/^ *run \w+Test\b/gm).length;
  if (status !== 0 || !output.includes(`${expected} passing`)) throw new Error(`${file}: not all of ${expected} tests pass:\n${output}`);
  return `${file}: ${expected} tests`;
};

const simulate = (main, samples, steps) =>
  quint('run', 'simulator.qnt', `--main=${main}`, '--backend=typescript', '--invariant=promises', '--seed=1', `--max-samples=${samples}`, `--max-steps=${steps}`);

const holds = (main, samples) => async () => {
  const { status, output } = await simulate(main, samples, 60);
  if (status !== 0 || !output.includes('[ok]')) throw new Error(`${main}: a promise breaks:\n${output}`);
  return `${main}: ${samples} random runs of 60 steps, no promise breaks`;
};

const breaks = (main) => async () => {
  const { status, output } = await simulate(main, 2000, 40);
  if (status === 0 || !output.includes('[violation]')) throw new Error(`${main}: no promise breaks:\n${output}`);
  return `${main}: a promise breaks`;
};

const simulator = readFileSync('simulator.qnt', 'utf8');
const without = [...simulator.matchAll(/^module (\w+_without_\w+)/gm)].map((m) => m[1]);
const steps = [
  holds('evaluation_whole', 300),
  holds('delivery_whole', 600),
  test('traces.qnt', 'traces'),
  test('scenarios.qnt', 'scenarios'),
  ...without.map(breaks),
  ...['evaluation.qnt', 'delivery.qnt', 'scenarios.qnt', 'simulator.qnt', 'traces.qnt'].map(typecheck),
];

const began = Date.now();
let failed = false;
const work = async () => {
  for (let step = steps.shift(); step; step = steps.shift()) {
    try {
      console.log(await step());
    } catch (error) {
      failed = true;
      console.error(error.message);
    }
  }
};
await Promise.all([work(), work()]);
console.log(`${failed ? 'FAILED' : 'The specification holds'}, ${((Date.now() - began) / 1000).toFixed(0)} s`);
process.exit(failed ? 1 : 0);
