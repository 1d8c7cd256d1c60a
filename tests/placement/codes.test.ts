import { readFileSync } from 'node:fs';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { operator, plan, simulate, type ClusterFile, type Plan } from '../../placement/index.ts';
import { parseClusterFile, parseEvents } from '../../src/cluster-file/index.ts';
import { randomCluster } from './support/random-cluster.ts';

/** The tables of codes in the README, by their heading: the closed set that scripts may rely on. */
function documented(): Map<string, Set<string>> {
  const text = readFileSync(new URL('../../placement/README.md', import.meta.url), 'utf8');
  const section = text.split('\n## Codes\n')[1]?.split('\n## ')[0] ?? '';
  const codes = new Map<string, Set<string>>();
  for (const line of section.split('\n')) {
    const [, heading, list] = /^\| `?(\w+)`? \| (.*) \|$/.exec(line) ?? [];
    if (heading === undefined || list === undefined || heading === 'of') continue;
    codes.set(heading, new Set([...list.matchAll(/`(\w+)`/g)].map((match) => match[1] ?? '')));
  }
  return codes;
}

/** What none of these clusters comes to: the tests of moves, plans, operators, of nowhere to go and of looking ahead do. */
const UNMET: readonly string[] = [
  'reason operator',
  'rule draining_last_choice',
  'rule destination_renewed',
  'rule copy_returned',
  'rule stall',
  'rule timeout',
  'rule fence_timeout',
  'rule operator',
  'waiting settling',
  'waiting leased',
  'unplaceable no_live_broker',
];

interface Case {
  readonly cluster: unknown;
  readonly events?: unknown;
}

const cases = ['cases/cases.json', 'cases/own.json'].flatMap(
  (file) => JSON.parse(readFileSync(new URL(file, import.meta.url), 'utf8')) as Case[],
);

describe('codes', () => {
  const known = documented();
  const seen = new Map([...known.keys()].map((heading) => [heading, new Set<string>()]));
  const note = (heading: string, code: string, detail: string): void => {
    if (known.get(heading)?.has(code) !== true) throw new Error(`${heading} ${code} is not in the README`);
    if (detail === '') throw new Error(`${heading} ${code} has no detail`);
    seen.get(heading)?.add(code);
  };
  const noting: typeof plan = (snapshot, reports) => {
    const made: Plan = plan(snapshot, reports);
    for (const step of made.steps) {
      note('reason', step.reason, step.why.detail);
      note('rule', step.why.rule, step.why.detail);
    }
    for (const row of made.waiting) note('waiting', row.reason, row.detail);
    for (const row of made.unplaceable) note('unplaceable', row.reason, row.detail);
    for (const row of made.unspread) note('unspread', row.reason, row.detail);
    return made;
  };
  const run = (file: ClusterFile, events: ReturnType<typeof parseEvents> = []): void =>
    void simulate(file, { events, maxPasses: 4_000 }, { plan: noting, ...operator });

  it('of every case are in the README', { timeout: 60_000 }, () => {
    expect([...known.keys()]).toEqual(['reason', 'rule', 'waiting', 'unplaceable', 'unspread']);
    for (const { cluster, events } of cases) {
      const parsed = events === undefined ? [] : parseEvents(JSON.stringify(events), 'events');
      run(parseClusterFile(JSON.stringify(cluster)), parsed);
    }
  });

  it('of random clusters are in the README (300 clusters, seed 19507)', { timeout: 120_000 }, () => {
    const shape = {
      ...{ brokers: 9, resources: 4, shards: 9, weights: true, zones: true, caps: true, troubles: true },
      ...{ outOfSync: true, ephemeral: true, skewed: true, fresh: true },
    };
    fc.assert(
      fc.property(randomCluster(shape), (file) => run(file)),
      { numRuns: 300, seed: 19_507 },
    );
  });

  it('are all met with there, but for those that need time, reports or an operator', () => {
    const unmet = [...known].flatMap(([heading, codes]) =>
      [...codes].filter((code) => seen.get(heading)?.has(code) !== true).map((code) => `${heading} ${code}`),
    );
    expect(unmet).toEqual(UNMET);
  });
});
