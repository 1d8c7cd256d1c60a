import { isBarred, timesFailed } from './failures.ts';
import { couldLead, keepsZones, mustCopy, startLeaderMove } from './leader-start.ts';
import { catchingUp } from './level.ts';
import type { Pass } from './pass.ts';
import { outside } from './share-book.ts';

/** A leadership that could go on, and how well: of two, the one whose numbers are smaller at the first that differs. */
interface Option {
  readonly s: number;
  readonly from: number;
  readonly to: number;
  readonly key: readonly number[];
}

/** By pair of brokers, the best: a stream may have a hundred thousand shards, each with as many places to go as there are brokers. */
type Options = Map<number, Option>;

/** Most alternatives that a `Why` lists. */
const SHOWN = 5;

/**
 * Steps 4 and 5 where caps, or copies out of sync, keep targets out of reach: once nothing else moves, and no broker that came
 * back still brings its copies up to date, one hand-over that brings a resource, else the totals, closer to floor and ceiling,
 * whatever the targets.
 */
export function levelBeyondTargets(pass: Pass): void {
  const { view, objective, targets } = pass;
  if (targets.settled || pass.moving || catchingUp(pass).size > 0 || pass.nextDeadlineMs !== null) return;
  const best: Options = new Map();
  for (let r = 0; r < view.resourceCount; r++) {
    if (objective.outsideOf(r) > 0) addOptions(pass, r, isLeveller, best);
  }
  const rule = best.size > 0 ? 'resource_beyond_target' : 'cluster_beyond_target';
  if (best.size === 0 && totalsAreOff(pass)) {
    for (let r = 0; r < view.resourceCount; r++) addOptions(pass, r, levelsTotals, best);
  }
  const options = [...best.values()].sort(byKey);
  for (const option of options) {
    const { s, to } = option;
    const why = whyOf(pass, option, rule, options);
    if (startLeaderMove(pass, { shard: s, to, reason: 'balance', why, optional: true })) return;
  }
}

type IsWanted = (pass: Pass, r: number, from: number, to: number) => boolean;

function isLeveller({ objective }: Pass, r: number, from: number, to: number): boolean {
  return objective.outsideChange(r, from, to) < 0;
}

function levelsTotals(pass: Pass, r: number, from: number, to: number): boolean {
  if (pass.objective.outsideChange(r, from, to) > 0 || pass.objective.totalsChange(from, to) >= 0)
    return false;
  return isOff(pass, from) || isOff(pass, to);
}

function totalsAreOff(pass: Pass): boolean {
  return pass.view.brokers.liveList.some((b) => isOff(pass, b));
}

function isOff({ view, book }: Pass, b: number): boolean {
  return outside(book.cluster(), b, view.tally.leaders[b] ?? 0) > 0;
}

function addOptions(pass: Pass, r: number, isWanted: IsWanted, best: Options): void {
  const { view, objective } = pass;
  const { count, live, liveList } = view.brokers;
  const wanted = new Map<number, readonly number[]>();
  const wantedFrom = (from: number): readonly number[] => {
    const known = wanted.get(from);
    if (known !== undefined) return known;
    const found = [...liveList].filter((to) => to !== from && isWanted(pass, r, from, to));
    wanted.set(from, found);
    return found;
  };
  const end = view.firstShard[r + 1] ?? 0;
  for (let s = view.firstShard[r] ?? 0; s < end; s++) {
    const from = view.nextLeader(s);
    if (live[from] !== 1 || !view.mayStart(s, 'leader')) continue;
    for (const to of wantedFrom(from)) {
      if (isBarred(view, s, to) || !couldLead(pass, s, to) || !keepsZones(pass, s, to)) continue;
      const copied = mustCopy(pass, s, to);
      if (!pass.hasSlot(copied, from, to)) continue;
      const falls = [objective.outsideChange(r, from, to), copied ? 1 : 0, objective.totalsChange(from, to)];
      const score = pass.rankings.of(s).high(to);
      const option = {
        s,
        from,
        to,
        key: [view.failedMoves(s), timesFailed(view, s, to), ...falls, -score, s, to],
      };
      const known = best.get(from * count + to);
      if (known === undefined || byKey(option, known) < 0) best.set(from * count + to, option);
    }
  }
}

function byKey(a: Option, b: Option): number {
  const at = a.key.findIndex((n, i) => n !== b.key[i]);
  return at < 0 ? 0 : (a.key[at] ?? 0) - (b.key[at] ?? 0);
}

function whyOf(
  { view, book }: Pass,
  { s, from, to }: Option,
  rule: string,
  options: readonly Option[],
): { rule: string; detail: string; rejected: { broker: string; by: string }[]; runnerUp: string | null } {
  const r = view.resource(s);
  const id = (b: number): string => view.brokers.id(b);
  const { floor, ceiling } = book.of(r);
  const led = (b: number): string =>
    `${id(b)} leads ${view.tally.leadersOf(r, b)} of ${view.resourceKeys[r]} (share ${floor[b]} to ${ceiling[b]}), ${view.tally.leaders[b]} in all`;
  const others = [...new Set(options.filter((option) => option.from === from).map((option) => option.to))];
  const rejected = others.filter((b) => b !== to);
  return {
    rule,
    detail: `${led(from)}; ${led(to)}; the targets are out of reach`,
    rejected: rejected.slice(0, SHOWN).map((b) => ({ broker: id(b), by: `levels less: ${led(b)}` })),
    runnerUp: rejected[0] === undefined ? null : id(rejected[0]),
  };
}
