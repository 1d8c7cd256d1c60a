import { NONE } from './broker-table.ts';
import { unconfirmedLeader } from './fence.ts';
import { zonesAfter } from './copies/index.ts';
import { startCopyMove } from './copy-start.ts';
import type { MoveRequest, Operator } from './events.ts';
import { mustCopy, setAfter, startLeaderMove } from './leader-start.ts';
import { abandon } from './moves.ts';
import { Pass } from './pass.ts';
import type { Reports, Snapshot, Step, Why } from './plan-types.ts';
import { leaderTargets } from './targets.ts';
import { View } from './view.ts';

/** What an operator's request comes to: the write, and the zones the shard spans before and after it; or why not. */
export type OperatorAnswer =
  | { readonly step: Step; readonly zonesBefore: number; readonly zonesAfter: number }
  | { readonly refused: string };

/** A move by hand. Refused, with the reason, where the planner would not make it; allowed while placement is paused. */
export function operatorMove(snapshot: Snapshot, reports: Reports, request: MoveRequest): OperatorAnswer {
  const pass = passOver(snapshot, reports);
  const { view } = pass;
  const s = view.indexOf(request.shard);
  if (s === NONE) return refuse(`${request.shard} is no shard of the cluster`);
  const to = view.brokers.find(request.to);
  if (to === NONE) return refuse(`no broker ${request.to} is registered`);
  const from = request.role === 'leader' ? (view.leader[s] ?? NONE) : view.brokers.find(request.from);
  const refused =
    shardRefusal(view, s) ??
    destinationRefusal(view, s, to) ??
    (request.role === 'leader'
      ? leaderRefusal(pass, s, to)
      : followerRefusal(pass, s, from, request.from, to));
  if (refused !== null) return refuse(`${request.shard}: ${refused}`);
  const before = zonesAfter(view, view.copies(s));
  const after = zonesAfter(
    view,
    request.role === 'leader' ? setAfter(pass, s, to) : [...view.copies(s).filter((b) => b !== from), to],
  );
  const why: Why = {
    rule: 'operator',
    detail: `an operator moves it to ${request.to}; it spans ${before} zones before and ${after} after`,
    rejected: [],
    runnerUp: null,
  };
  const start = { shard: s, from, to, reason: 'operator', why, optional: false } as const;
  if (request.role === 'leader') startLeaderMove(pass, start);
  else startCopyMove(pass, start);
  return { step: onlyStep(pass), zonesBefore: before, zonesAfter: after };
}

/** Takes a move back: before the fence the destination is dropped; after it the old leader serves again at a new epoch. */
export function operatorCancel(snapshot: Snapshot, reports: Reports, shard: string): OperatorAnswer {
  const pass = passOver(snapshot, reports);
  const { view } = pass;
  const s = view.indexOf(shard);
  if (s === NONE) return refuse(`${shard} is no shard of the cluster`);
  const move = view.move(s);
  if (move === null) return refuse(`${shard} has no move in flight: there is nothing to cancel`);
  if (move.step === 'fenced' && !view.leaderServes(s)) {
    const leader = view.leader[s] ?? NONE;
    const state = `${view.brokers.id(leader)}, which led it, is ${view.brokers.lifecycle(leader)}`;
    return refuse(`${shard} is fenced and ${state}: nobody could serve it again`);
  }
  const leader = view.leader[s] ?? NONE;
  if (move.step === 'fenced' && !view.isHeard(leader)) {
    return refuse(
      `${shard} is fenced and ${view.brokers.id(leader)}, which led it, was not heard within its lease: ` +
        `wait until it is heard again; once it is declared down, ${view.brokers.id(move.to)} leads if it is in sync`,
    );
  }
  const before = zonesAfter(view, view.copies(s));
  abandon(pass, s, move, { rule: 'operator', detail: 'an operator cancelled the move', failedAt: null });
  return { step: onlyStep(pass), zonesBefore: before, zonesAfter: zonesAfter(view, view.copies(s)) };
}

/**
 * Why a shard's log may not be given up; `null`: it may. Only a shard nobody can serve is given up: no copy in sync is
 * on a serving broker, and the last leader's lease has passed.
 */
export function abandonRefusal(snapshot: Snapshot, reports: Reports, shard: string): string | null {
  const view = new View(snapshot, reports);
  const s = view.indexOf(shard);
  if (s === NONE) return `${shard} is no shard of the cluster`;
  const leader = view.leader[s] ?? NONE;
  if (leader === NONE) return `${shard} was never placed`;
  // It holds nothing.
  if (unconfirmedLeader(view, s) === 'never') return null;
  const holder = view.inSync(s).find((b) => view.brokers.serving[b] === 1);
  if (holder !== undefined) {
    return `${shard}: ${view.brokers.id(holder)} (${view.brokers.lifecycle(holder)}) holds all of it`;
  }
  const until = reports.leasedUntilMs.get(view.brokers.id(leader)) ?? 0;
  if (until > view.nowMs) {
    return `${shard}: ${view.brokers.id(leader)} may serve on its lease until ${until} ms of cluster time`;
  }
  return null;
}

/** For a simulation: the steps alone. */
export const operator: Operator = {
  startMove: (snapshot, reports, request) => stepOf(operatorMove(snapshot, reports, request)),
  cancelMove: (snapshot, reports, shard) => stepOf(operatorCancel(snapshot, reports, shard)),
};

function stepOf(answer: OperatorAnswer): Step | { refused: string } {
  return 'refused' in answer ? answer : answer.step;
}

function refuse(refused: string): { refused: string } {
  return { refused };
}

/** A pass that decides nothing by itself: targets are there for choosing which copy goes. */
function passOver(snapshot: Snapshot, reports: Reports): Pass {
  const view = new View(snapshot, reports);
  const pass = new Pass(view);
  pass.targets = leaderTargets(view, pass.book, new Int32Array(view.resourceCount));
  return pass;
}

function onlyStep(pass: Pass): Step {
  const step = pass.builder.steps[0];
  if (step === undefined) throw new Error('a move that was not refused made no step');
  return step;
}

/** The index of a shard by its key; NONE if the cluster has no such shard. */
function shardRefusal(view: View, s: number): string | null {
  const leader = view.leader[s] ?? NONE;
  if (leader === NONE) return 'it is not placed yet';
  const move = view.move(s);
  if (move !== null) return `a ${move.role} move to ${view.brokers.id(move.to)} is in flight`;
  if (view.leaderServes(s)) return null;
  return `its leader ${view.brokers.id(leader)} (${view.brokers.lifecycle(leader)}) does not serve it`;
}

function destinationRefusal(view: View, s: number, to: number): string | null {
  const id = view.brokers.id(to);
  if (view.brokers.live[to] === 0) return `${id} is ${view.brokers.lifecycle(to)}, not live`;
  if (view.holds(s, to) || view.room(to) > 0) return null;
  return `${id} is at maxShards ${view.brokers.cap[to]}`;
}

function leaderRefusal(pass: Pass, s: number, to: number): string | null {
  const { view } = pass;
  const id = view.brokers.id(to);
  if (view.leader[s] === to) return `${id} leads it already`;
  if (view.holds(s, to) && !view.isInSync(s, to)) return `${id} holds a copy that is not in sync`;
  return pass.slotRefusal(mustCopy(pass, s, to), view.leader[s] ?? NONE, to);
}

function followerRefusal(
  pass: Pass,
  s: number,
  from: number,
  asked: string | null,
  to: number,
): string | null {
  const { view } = pass;
  const { replicationFactor, durable } = view.resourceRow(view.resource(s));
  if (view.holds(s, to)) return `${view.brokers.id(to)} holds a copy already`;
  if (from === NONE) {
    if (asked !== null) return `no broker ${asked} is registered`;
    if (view.copies(s).length >= replicationFactor) {
      return `it has its ${replicationFactor} copies: name the one that goes`;
    }
  } else if (!view.holds(s, from)) return `${view.brokers.id(from)} holds no copy`;
  else if (view.leader[s] === from) return `${view.brokers.id(from)} leads it: move the leadership instead`;
  return pass.slotRefusal(durable, from, to);
}
