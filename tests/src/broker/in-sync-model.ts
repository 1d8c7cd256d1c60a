import {
  afterEvent,
  openInSync,
  REPLICA_LAG_MS,
  setToReport,
  type InSyncEvent,
  type InSyncRow,
  type InSyncState,
} from '../../../src/broker/in-sync.ts';

export const LEADER = 'l';
export const FOLLOWERS = ['x', 'y'] as const;
export type Follower = (typeof FOLLOWERS)[number];

/** Bounds of the search. */
const MAX_RECORDS = 2;
const MAX_REPORTS = 3;
const MAX_GENERATION = 4;

/** A report between its sending and the last moment at which it can have an effect. */
interface Report {
  readonly generation: number;
  readonly inSync: readonly string[];
  /** The leader still waits for the answer. */
  readonly isAwaited: boolean;
  /** The answer on its way back; `null` until the control plane has taken the report. */
  readonly accepted: boolean | null;
}

/** The leader, the control plane's row, what the copies really hold, and the reports between them. */
export interface World {
  readonly leader: InSyncState;
  readonly nowMs: number;
  readonly row: InSyncRow;
  readonly ends: Readonly<Record<Follower, number>>;
  readonly reports: readonly Report[];
  /** Registered again with an empty disk; the leader learns it with the next row. */
  readonly wiped: readonly Follower[];
  /** Faults that may still happen: a report taken twice, a broker declared down, a broker registered again. */
  readonly faults: number;
}

export interface Action {
  readonly name: string;
  readonly next: World;
}

export function start(inSync: readonly string[]): World {
  const row = { generation: 1, replicas: [LEADER, ...FOLLOWERS], inSync };
  const leader = openInSync({ self: LEADER, row, end: 0, nowMs: 0 });
  return { leader, nowMs: 0, row, ends: { x: 0, y: 0 }, reports: [], wiped: [], faults: 1 };
}

/** Two worlds with one key behave alike. */
export function keyOf({ leader, nowMs, row, ends, reports, wiped, faults }: World): string {
  const copies = FOLLOWERS.map((id) => {
    const { end, isAttached, lack } = leader.copies.get(id) ?? { end: null, isAttached: false, lack: null };
    const lag = lack === null ? 'n' : `${nowMs - lack.sinceMs > REPLICA_LAG_MS ? 'l' : 'b'}${lack.until}`;
    return `${end}${isAttached ? 'a' : 'd'}${lag}`;
  });
  const { row: known, end, acknowledged, underWay, perhapsAdded } = leader;
  const reported = reports
    .map((one) => `${one.generation}${one.inSync.join('')}${one.isAwaited ? 'w' : 'o'}${one.accepted}`)
    .sort();
  return [
    `${known.generation}${known.inSync.join('')},${end},${acknowledged},${underWay?.join('') ?? '-'}`,
    `${perhapsAdded.join('')},${copies.join()},${row.generation}${row.inSync.join('')},${ends.x}${ends.y}`,
    `${wiped.join('')},${faults},${reported.join()}`,
  ].join(';');
}

/** What is wrong with a world; `null`: nothing. */
export function violation({ leader, row, ends }: World): string | null {
  for (const id of FOLLOWERS) {
    if (row.inSync.includes(id) && ends[id] < leader.acknowledged) {
      return `${id} is in sync with ${ends[id]} records, and ${leader.acknowledged} are acknowledged`;
    }
  }
  return null;
}

/** Everything that can happen next. */
export function* actions(world: World): Generator<Action> {
  yield* ofLeader(world);
  for (const id of FOLLOWERS) yield* ofFollower(world, id);
  for (const [at, report] of world.reports.entries()) yield* ofReport(world, at, report);
  if (world.faults > 0 && world.row.generation < MAX_GENERATION) yield* ofBrokers(world);
}

function* ofLeader(world: World): Generator<Action> {
  const { leader, nowMs, row } = world;
  if (leader.end < MAX_RECORDS) {
    yield { name: 'append', next: told(world, { type: 'appended', end: leader.end + 1, nowMs }) };
  }
  const isLaggingSoon = [...leader.copies.values()].some(
    ({ lack }) => lack !== null && nowMs - lack.sinceMs <= REPLICA_LAG_MS,
  );
  if (isLaggingSoon) yield { name: 'wait', next: { ...world, nowMs: nowMs + REPLICA_LAG_MS + 1 } };
  if (world.reports.length < MAX_REPORTS && leader.row.generation < MAX_GENERATION) {
    const next = report(world);
    if (next !== null) yield { name: 'report', next };
  }
  if (row.generation >= leader.row.generation) yield { name: 'row', next: showRow(world) };
}

function* ofFollower(world: World, id: Follower): Generator<Action> {
  const { leader, nowMs, ends } = world;
  const copy = leader.copies.get(id);
  if (copy === undefined) return;
  if (!copy.isAttached || copy.end !== ends[id]) {
    yield { name: `attach ${id}`, next: attach(world, id) };
  }
  if (!copy.isAttached || world.wiped.includes(id)) return;
  yield { name: `detach ${id}`, next: told(world, { type: 'detached', copy: id }) };
  if (ends[id] < leader.end) {
    const written = { ...world, ends: { ...ends, [id]: ends[id] + 1 } };
    yield { name: `write ${id}`, next: written };
    yield {
      name: `write and ack ${id}`,
      next: told(written, { type: 'acked', copy: id, end: ends[id] + 1, nowMs }),
    };
  }
}

function* ofReport(world: World, at: number, one: Report): Generator<Action> {
  const name = `${one.inSync.join('')}@${one.generation}`;
  const without = world.reports.filter((_, i) => i !== at);
  const withReport = (patch: Partial<Report>): World => ({
    ...world,
    reports: world.reports.map((report, i) => (i === at ? { ...report, ...patch } : report)),
  });
  if (one.accepted === null) {
    const taken = take(world, at);
    yield { name: `take ${name}`, next: taken };
    if (world.faults > 0) {
      const again = { ...one, isAwaited: false };
      yield {
        name: `take ${name}, to be taken again`,
        next: { ...taken, faults: world.faults - 1, reports: [...taken.reports, again] },
      };
    }
    if (one.isAwaited)
      yield { name: `lose ${name}`, next: answer(withReport({ isAwaited: false }), one, false) };
    else yield { name: `drop ${name}`, next: { ...world, reports: without } };
    return;
  }
  yield { name: `answer ${name}`, next: answer({ ...world, reports: without }, one, one.accepted) };
  if (one.accepted) {
    yield { name: `lose the answer of ${name}`, next: answer({ ...world, reports: without }, one, false) };
  }
}

/** What the control plane does by itself. */
function* ofBrokers(world: World): Generator<Action> {
  for (const id of FOLLOWERS) {
    const inSync = world.row.inSync.filter((one) => one !== id);
    const faults = world.faults - 1;
    if (world.row.inSync.includes(id)) {
      yield { name: `down ${id}`, next: { ...rewritten(world, inSync), faults } };
    }
    const wiped = { ...rewritten(world, inSync), faults, ends: { ...world.ends, [id]: 0 } };
    yield { name: `wipe ${id}`, next: { ...wiped, wiped: [...world.wiped, id] } };
  }
}

export function told(world: World, event: InSyncEvent): World {
  return { ...world, leader: afterEvent(world.leader, event) };
}

export function report(world: World): World | null {
  const inSync = setToReport(world.leader, world.nowMs);
  if (inSync === null) return null;
  const one = { generation: world.leader.row.generation, inSync, isAwaited: true, accepted: null };
  return { ...told(world, { type: 'reported', inSync }), reports: [...world.reports, one] };
}

/** The leader learns of new registrations no later than of the row that they wrote. */
export function showRow(world: World): World {
  let next = world;
  for (const copy of world.wiped) next = told(next, { type: 'forgotten', copy, nowMs: world.nowMs });
  return { ...told(next, { type: 'row', row: world.row, nowMs: world.nowMs }), wiped: [] };
}

export function attach(world: World, id: Follower): World {
  const next = told(world, { type: 'attached', copy: id, end: world.ends[id], nowMs: world.nowMs });
  return { ...next, wiped: world.wiped.filter((one) => one !== id) };
}

/** The control plane takes a report: exactly at its generation, and what changes nothing makes no generation. */
export function take(world: World, at: number): World {
  const one = world.reports[at];
  if (one === undefined) throw new Error(`there is no report ${at}`);
  const accepted = one.generation === world.row.generation;
  const isSame =
    one.inSync.length === world.row.inSync.length && one.inSync.every((id) => world.row.inSync.includes(id));
  const next = accepted && !isSame ? rewritten(world, one.inSync) : world;
  const reports = world.reports.flatMap((report, i) => {
    if (i !== at) return [report];
    return one.isAwaited ? [{ ...report, accepted }] : [];
  });
  return { ...next, reports };
}

export function answer(world: World, { generation, isAwaited }: Report, accepted: boolean): World {
  return isAwaited ? told(world, { type: 'answered', generation, accepted }) : world;
}

function rewritten(world: World, inSync: readonly string[]): World {
  const { row } = world;
  const named = row.replicas.filter((id) => inSync.includes(id));
  return { ...world, row: { ...row, generation: row.generation + 1, inSync: named } };
}
