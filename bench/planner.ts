/**
 * The planner at three sizes: a first placement, a settled pass, one after a small change, one broker joining,
 * draining, dying, a policy changed, and the same with every twentieth leadership skewed; beside it, on the same layouts,
 * a striped round robin and the plain greedy. Each layout runs in processes of its own: one that makes the passes, with
 * the young generation that the planner's thread has, and one, launched as a node is, that has them made in that thread.
 * Linux only.
 *   npm run bench:planner -- [--layouts 0,1,2]
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { parseArgs } from 'node:util';
import { NODE_FLAGS } from '../tests/support/cluster.ts';
import { LAYOUTS, type Layout } from './planner-layouts.ts';
import { measurePasses } from './planner-passes.ts';
import { printTables, type Measured } from './planner-table.ts';
import { measureStops } from './planner-thread.ts';
import { numbers } from './support.ts';

/** The planner thread's. */
const SEMI_SPACE_MIB = 32;
const HEAP_MIB = 8_192;

const { values } = parseArgs({
  options: {
    layouts: { type: 'string', default: '0,1,2' },
    passes: { type: 'string' },
    stops: { type: 'string' },
  },
});

if (values.passes !== undefined) await measurePasses(layoutOf(Number(values.passes)));
else if (values.stops !== undefined) await measureStops(layoutOf(Number(values.stops)));
else {
  let before: Measured | null = null;
  for (const n of numbers(values.layouts)) {
    const young = [`--max-semi-space-size=${SEMI_SPACE_MIB}`, '--expose-gc'];
    const passes = await rowsOf([...young, import.meta.filename, '--passes', String(n)]);
    const stops = await rowsOf([...NODE_FLAGS, '--expose-gc', import.meta.filename, '--stops', String(n)]);
    const measured: Measured = { layout: layoutOf(n), rows: [...passes, ...stops] };
    printTables(measured, before);
    before = measured;
  }
}

/** What a process of its own prints, line by line; what it had before it failed, if it did. */
async function rowsOf(args: readonly string[]): Promise<Measured['rows']> {
  const all = [...process.execArgv, `--max-old-space-size=${HEAP_MIB}`, ...args];
  const child = spawn(process.execPath, all, { stdio: ['ignore', 'pipe', 'inherit'] });
  let text = '';
  const ended = once(child, 'close');
  for await (const chunk of child.stdout.setEncoding('utf8')) text += String(chunk);
  const [code, signal] = (await ended) as [number | null, string | null];
  if (code !== 0) {
    console.error(`${args.slice(-2).join(' ')} ended with ${code ?? signal}`);
    process.exitCode = 1;
  }
  const rows = text.split('\n').filter((line) => line !== '');
  return rows.map((line) => JSON.parse(line) as Measured['rows'][number]);
}

function layoutOf(n: number): Layout {
  const layout = LAYOUTS[n];
  if (layout === undefined) throw new Error(`no layout ${n}`);
  return layout;
}
