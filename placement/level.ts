import { NONE } from './broker-table.ts';
import { canTake, keepsZones, shardToCopy, startLeaderMove } from './leader-start.ts';
import { noteHolding, type LeaderMoves, type ResourceMoves } from './leader-moves.ts';
import type { Pass } from './pass.ts';
import type { Why } from './plan-types.ts';
import type { View } from './view.ts';

/** One hand-over that would level; the shard is chosen already, or any that `from` leads will do. */
interface Option {
  readonly r: number;
  readonly from: number;
  readonly to: number;
  readonly shard: number | null;
  readonly copied: boolean;
}

/**
 * Steps 4 and 5. A resource that is out of floor…ceiling is levelled first: who leads the most of it hands to who
 * leads the fewest, always from above a target to below one. Only when no resource wants a move do the totals move,
 * by the same rule.
 */
export function levelLeaders(pass: Pass, moves: LeaderMoves): void {
  if (pass.targets.settled) return;
  noteHolding(pass);
  const behind = catchingUp(pass);
  if (!levelResources(pass, moves, behind)) levelTotals(pass, moves, behind);
}

/** Step 4. Answers whether any resource wants a move, started or not. */
function levelResources(pass: Pass, moves: LeaderMoves, behind: ReadonlySet<number>): boolean {
  const { view, objective } = pass;
  let wanted = false;
  for (let r = 0; r < view.resourceCount; r++) {
    if (objective.outsideOf(r) === 0) continue;
    if (wanted && noSlots(pass)) return true;
    const falls = (option: Option): boolean => objective.outsideChange(r, option.from, option.to) < 0;
    for (;;) {
      const options = optionsOf(pass, r, moves.of(r), behind).filter(falls);
      options.sort((a, b) => byLeaders(pass, r, a, b));
      const result = startFirst(pass, options, moves, 'resource');
      wanted ||= result !== 'none';
      if (result !== 'started') break;
    }
  }
  return wanted;
}

/** Step 5. */
function levelTotals(pass: Pass, moves: LeaderMoves, behind: ReadonlySet<number>): void {
  const { objective } = pass;
  for (;;) {
    if (noSlots(pass)) return;
    const options: Option[] = [];
    for (const r of moves.wanting()) {
      for (const option of optionsOf(pass, r, moves.of(r), behind)) {
        if (objective.outsideChange(r, option.from, option.to) > 0) continue;
        if (objective.totalsChange(option.from, option.to) < 0) options.push(option);
      }
    }
    options.sort((a, b) => byTotals(pass, a, b));
    if (startFirst(pass, options, moves, 'cluster') !== 'started') return;
  }
}

/**
 * Brokers that came back not long ago and still bring copies of theirs up to date: once those are in sync leaderships
 * can be handed over, and nothing has to be copied. Waited for as long as a move may make no progress, since a copy
 * that stays out of sync must not hold a move up for ever.
 */
export function catchingUp(pass: Pass): ReadonlySet<number> {
  const { view } = pass;
  const { brokers, nowMs, policy } = view;
  const untilMs = (b: number): number => (brokers.rows[b]?.registeredAtMs ?? 0) + policy.moveStallMs;
  // A registration at 0 is one that a file does not date.
  const isRecent = (b: number): boolean => {
    const registeredAtMs = brokers.rows[b]?.registeredAtMs ?? 0;
    return registeredAtMs > 0 && registeredAtMs <= nowMs && nowMs < untilMs(b);
  };
  const found = new Set<number>();
  for (const b of brokers.liveList) {
    if (!isRecent(b) || !lacksMarks(view, b)) continue;
    pass.wakeAt(untilMs(b));
    found.add(b);
  }
  return found;
}

function lacksMarks(view: View, b: number): boolean {
  for (let s = 0; s < view.shardCount; s++) {
    // A copy that a move makes is not one that was there before.
    if (view.holds(s, b) && !view.isInSync(s, b) && view.move(s)?.to !== b) return true;
  }
  return false;
}

function noSlots(pass: Pass): boolean {
  return pass.copySlotsLeft <= 0 && pass.handoverSlotsLeft <= 0;
}

/** What a resource could hand over between live brokers; hand-overs first. Drains are step 2's. */
function optionsOf(
  pass: Pass,
  r: number,
  { handovers, supply, demand }: ResourceMoves,
  behind: ReadonlySet<number>,
): Option[] {
  const { view } = pass;
  const options: Option[] = [];
  for (const { shard, from, to, copied } of handovers) {
    if (view.brokers.live[from] === 0 || !view.mayStart(shard, 'leader')) continue;
    if (copied && behind.has(to)) continue;
    options.push({ r, from, to, shard, copied });
  }
  for (const from of view.brokers.liveList) {
    if ((supply[from] ?? 0) <= 0) continue;
    for (const to of view.brokers.liveList) {
      if ((demand[to] ?? 0) <= 0 || behind.has(to)) continue;
      options.push({ r, from, to, shard: null, copied: true });
    }
  }
  return options;
}

function copyLast(a: Option, b: Option): number {
  return (a.copied ? 1 : 0) - (b.copied ? 1 : 0);
}

/** Among equals the hand-over first, then who leads the most, by its share, to who leads the fewest. */
function byLeaders(pass: Pass, r: number, a: Option, b: Option): number {
  const { exact } = pass.book.of(r);
  const above = (broker: number): number => pass.view.tally.leadersOf(r, broker) - (exact[broker] ?? 0);
  return copyLast(a, b) || above(b.from) - above(a.from) || above(a.to) - above(b.to) || byIndex(a, b);
}

function byTotals(pass: Pass, a: Option, b: Option): number {
  const { exact } = pass.book.cluster();
  const above = (broker: number): number => (pass.view.tally.leaders[broker] ?? 0) - (exact[broker] ?? 0);
  return copyLast(a, b) || above(b.from) - above(a.from) || above(a.to) - above(b.to) || byIndex(a, b);
}

function byIndex(a: Option, b: Option): number {
  return a.r - b.r || a.from - b.from || a.to - b.to || (a.shard ?? 0) - (b.shard ?? 0);
}

/** Starts the first option that slots and shards allow. `wanted`: one could start but for the slots. */
function startFirst(
  pass: Pass,
  options: readonly Option[],
  moves: LeaderMoves,
  rule: 'resource' | 'cluster',
): 'started' | 'wanted' | 'none' {
  let wanted = false;
  for (const option of options) {
    const { r, from, to, copied } = option;
    const plan = moves.of(r);
    const taken = new Set(plan.handovers.map((handover) => handover.shard));
    const takers = [...pass.view.brokers.liveList].filter((b) => (plan.demand[b] ?? 0) > 0);
    const free = pass.hasSlot(copied, from, to);
    if (!free && wanted) continue;
    const shard = option.shard ?? shardToCopy(pass, r, { from, to, takers, taken, optional: true });
    if (shard === NONE || !canTake(pass, shard, to) || !keepsZones(pass, shard, to)) continue;
    wanted = true;
    if (!free) continue;
    const why = levelWhy(pass, option, rule, options);
    if (!startLeaderMove(pass, { shard, to, reason: 'balance', why, optional: true })) continue;
    if (option.shard === null) {
      plan.supply[from] = (plan.supply[from] ?? 0) - 1;
      plan.demand[to] = (plan.demand[to] ?? 0) - 1;
    }
    return 'started';
  }
  return wanted ? 'wanted' : 'none';
}

/** Most alternatives that a `Why` lists. */
const SHOWN = 5;

function levelWhy(
  pass: Pass,
  { r, from, to, shard, copied }: Option,
  rule: 'resource' | 'cluster',
  options: readonly Option[],
): Why {
  const { view, targets, book } = pass;
  const { tally, brokers } = view;
  const id = (b: number): string => brokers.id(b);
  const led = (b: number): string =>
    `${id(b)} leads ${tally.leadersOf(r, b)} of ${view.resourceKeys[r]} (target ${targets.of(r, b)})`;
  const share = book.cluster();
  const total = (b: number): string =>
    `${tally.leaders[b]} in all (share ${share.floor[b]} to ${share.ceiling[b]})`;
  const others = [...new Set(options.map((option) => option.to))].filter((b) => b !== to);
  const copying = copied || shard === null ? 'it must be copied' : holdingText(pass, shard, to);
  return {
    rule,
    detail: `${led(from)}, ${total(from)}; ${led(to)}, ${total(to)}; ${copying}`,
    rejected: others
      .slice(0, SHOWN)
      .map((b) => ({ broker: id(b), by: lesserText(pass, options, { r, from, to: b }) })),
    runnerUp: others[0] === undefined ? null : id(others[0]),
  };
}

/** What the best option to another broker would have been. */
function lesserText(
  { view }: Pass,
  options: readonly Option[],
  move: { r: number; from: number; to: number },
): string {
  const best = options.find((option) => option.to === move.to);
  const led = `leads ${view.tally.leadersOf(best?.r ?? move.r, move.to)}, ${view.tally.leaders[move.to]} in all`;
  return best?.copied === true ? `${led}; a copy must be made` : led;
}

function holdingText({ view }: Pass, shard: number, to: number): string {
  return view.isInSync(shard, to)
    ? `${view.brokers.id(to)} holds an in-sync copy`
    : 'there is no log to copy';
}
