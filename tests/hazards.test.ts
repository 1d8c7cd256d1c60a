import { readdirSync, readFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { expect, test } from 'vitest';

const ROOT = join(import.meta.dirname, '..');

/** What goes wrong in replicated logs, from public faults of etcd, hashicorp/raft, openraft, TiKV, Redpanda, NATS, Kafka, CockroachDB and rqlite. */
const HAZARDS = [
  'a read is answered by acknowledgements of an earlier read',
  'a new leader reads before its no-op commits',
  'a cut-off leader answers a read',
  'a stopped process answers what waited in its socket',
  'a member is ready before it has replayed',
  'pre-vote and check-quorum elect nobody',
  'a bridge between two halves deposes a good leader',
  'a member that remembers a gone leader refuses its vote',
  'a removed member campaigns',
  'a second vote in one term, by a crash or by repeated requests',
  'a leader that comes back leads its old term again',
  'last logs are compared in the wrong order',
  'an empty log behind a snapshot counts as no log',
  'figure 8: an entry of an older term is committed by counting',
  'a late append truncates what follows it',
  'a proposal succeeds by an acknowledgement of what was truncated',
  'back-off that does not end, or passes the match index',
  'a follower lost what it acknowledged',
  'a write to disk counts for the entries that took its place (ABA)',
  'something is answered before it is on disk',
  'an append that reaches back before a snapshot',
  'members that apply the same log differ',
  'a snapshot over a slow, broken link',
  'a snapshot that is refused, flipped or cut short',
  'a crash while a snapshot is installed',
  'compaction past what is applied',
  'a membership change too early, or undone',
  'a leadership transfer that is lost, or to the wrong member',
  'a learner that never answers is promoted',
  'a member that lost its volume is counted',
  'a disk that fails once and works again',
  'a bit flipped on disk',
  "yesterday's copy of a data directory comes back",
  'a retry has two effects, or another answer',
  'without a quorum memory and log grow',
  'an old member skips a command it does not know',
  'a peer that stops reading takes the others with it',
  'frames that lie',
] as const;

/** What a hazard, or the rest of it, waits for. */
const WAITING: Readonly<Record<number, string>> = {
  9: 'through real nodes: members added and removed at run time',
  23: 'snapshots sent in chunks',
  24: 'snapshots sent in chunks',
  30: 'a member with a new volume taken back in',
  33: 'a member with a new volume taken back in',
};
/** Those that no part of may wait. */
const COMPLETE = [...Array.from({ length: 22 }, (_, at) => at + 1), 34, 35, 36, 37, 38];

function filesUnder(directory: string): string[] {
  return readdirSync(directory, { withFileTypes: true }).flatMap((entry) => {
    const path = join(directory, entry.name);
    if (entry.isDirectory()) return filesUnder(path);
    return entry.name.endsWith('.ts') && path !== import.meta.filename ? [path] : [];
  });
}

/** A title of a test or of a group of tests that begins with the hazard's number. */
const TITLE = /(?:\b(?:test|it|describe)\(|\)\(|^)\s*(['"`])hazard (\d+)[:,] (.+?)\1,/gm;

interface Named {
  readonly file: string;
  readonly title: string;
}

function namedTests(): ReadonlyMap<number, readonly Named[]> {
  const found = new Map<number, Named[]>();
  for (const path of filesUnder(import.meta.dirname).sort()) {
    const file = relative(ROOT, path);
    for (const [, , number, text = ''] of readFileSync(path, 'utf8').matchAll(TITLE)) {
      // What a title is filled with is known only when it runs.
      const title = text.replaceAll(/\$\{[^}]*\}|%[a-z]/g, 'n').replaceAll('\\', '');
      const named = found.get(Number(number)) ?? [];
      if (!named.some((other) => other.file === file && other.title === title)) named.push({ file, title });
      found.set(Number(number), named);
    }
  }
  return found;
}

function page(named: ReadonlyMap<number, readonly Named[]>): string {
  const lines = [
    '# Hazards',
    '',
    'What has gone wrong in replicated logs elsewhere, and the tests here that carry its number. This page is written by',
    '`npx vitest run --project unit tests/hazards.test.ts -u`. The simulator looks for them too, by seed.',
  ];
  for (const [at, text] of HAZARDS.entries()) {
    const number = at + 1;
    lines.push('', `## ${number}. ${text[0]?.toUpperCase()}${text.slice(1)}`, '');
    const byFile = new Map<string, string[]>();
    for (const { file, title } of named.get(number) ?? []) {
      byFile.set(file, [...(byFile.get(file) ?? []), title]);
    }
    for (const [file, titles] of byFile) {
      lines.push(`- \`${file}\``, ...titles.map((title) => `  - ${title}`));
    }
    const waits = WAITING[number];
    if (waits !== undefined) lines.push(`- waits for: ${waits}`);
  }
  return `${lines.join('\n')}\n`;
}

test('every hazard is named by a test, or says what it waits for; docs/hazards.md lists them', async () => {
  const named = namedTests();
  expect(COMPLETE.filter((number) => !named.has(number))).toEqual([]);
  const numbers = HAZARDS.map((_, at) => at + 1);
  expect(numbers.filter((number) => !named.has(number) && WAITING[number] === undefined)).toEqual([]);
  expect([...named.keys()].filter((number) => !numbers.includes(number))).toEqual([]);
  await expect(page(named)).toMatchFileSnapshot('../docs/hazards.md');
});
