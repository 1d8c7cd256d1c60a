import { MAX_FAILURES } from './failures.ts';
import type { Assignment, Broker, Policy } from './model.ts';
import { movedBy } from './moved.ts';
import type { DecidedAssignment, Step } from './plan-types.ts';
import type { MoveSlots } from './slots.ts';

/** The part of a step that writing needs: what the log carries of it. */
export type DecidedStep = Pick<Step, 'step' | 'shard' | 'expect' | 'requires' | 'opensEpoch' | 'next'>;

/**
 * The row that a decided step makes of `current`. The only way a decision becomes a row, live and simulated.
 * The generation is one above the row's own, or one above `maxGeneration` (the highest any shard ever had) for
 * a new shard, so that a name deleted and created again cannot be mistaken. What has moved in this phase stays noted.
 */
export function writeStep(
  current: Assignment | undefined,
  step: Pick<DecidedStep, 'step' | 'shard' | 'opensEpoch' | 'next'>,
  { maxGeneration, phase }: { readonly maxGeneration: number; readonly phase: number },
): Assignment {
  const generation = (current?.generation ?? maxGeneration) + 1;
  const moved = movedBy(current, step, phase);
  const { leader, replicas, inSync, state, failedMoves, failures, move } = step.next;
  return {
    shard: step.shard,
    leader,
    replicas,
    inSync,
    generation,
    epoch: current === undefined || step.opensEpoch ? generation : current.epoch,
    state,
    failedMoves,
    ...(failures === undefined ? {} : { failures }),
    move,
    ...(moved === undefined ? {} : { moved }),
  };
}

/** What the conditions of a write are checked against, as it stands right before the write. */
export interface WriteContext {
  readonly broker: (id: string) => Broker | undefined;
  /** Copies on a broker, moves in flight counted as finished. */
  readonly copies: (broker: string) => number;
  readonly slots: MoveSlots;
  readonly policy: Policy;
  readonly durable: boolean;
  /** Incarnation of the destination when the move in flight was staged; `null`: no move. */
  readonly stagedIncarnation: number | null;
}

export interface WriteRefusal {
  /** `stale`: decided for another generation or incarnation, or for a broker that has changed. `refused`: never allowed. */
  readonly code: 'stale' | 'refused' | 'limit_exceeded';
  readonly detail: string;
}

/**
 * Why a decided step may not be written; `null`: it may. Refusing is validation, not deciding: a step is
 * written as it is or not at all. (placement.md, "Shape" and "Moves".)
 */
export function refusalOf(
  current: Assignment | undefined,
  step: DecidedStep,
  context: WriteContext,
): WriteRefusal | null {
  const generation = current?.generation ?? 0;
  if (step.expect !== generation) {
    return stale(`${step.shard} is at generation ${generation}, the step was decided for ${step.expect}`);
  }
  const shape = malformed(step.next) ?? illegalChange(current, step, context);
  if (shape !== null) return { code: 'refused', detail: `${step.shard}: ${shape}` };
  return (
    unmetRequirement(current, step, context) ??
    losesHolder(current, step, context) ??
    unfitCutOver(current, step, context) ??
    overCap(current, step, context) ??
    noSlot(current, step, context)
  );
}

/** What every row must satisfy, whoever wrote it; says the first thing that is wrong. */
export function malformed(row: DecidedAssignment): string | null {
  const copies = new Set(row.replicas);
  if (copies.size !== row.replicas.length) return 'a broker holds two copies';
  if (!copies.has(row.leader)) return `leader ${row.leader} holds no copy`;
  if (new Set(row.inSync).size !== row.inSync.length) return 'a broker is in sync twice';
  const stray = row.inSync.find((broker) => !copies.has(broker));
  if (stray !== undefined) return `${stray} is in sync and holds no copy`;
  const failures = row.failures ?? [];
  if (failures.length > MAX_FAILURES) {
    return `it has ${failures.length} failures, at most ${MAX_FAILURES} are kept`;
  }
  if (new Set(failures.map(({ to }) => to)).size !== failures.length)
    return 'a destination failed twice over';
  if (row.move === null) return row.state === 'draining' ? 'it is fenced without a move' : null;
  return malformedMove(row, row.move, copies);
}

function malformedMove(
  row: DecidedAssignment,
  move: NonNullable<DecidedAssignment['move']>,
  copies: ReadonlySet<string>,
): string | null {
  if (!copies.has(move.to)) return `destination ${move.to} holds no copy`;
  if (move.from === move.to) return `the move goes from ${move.to} to itself`;
  if (move.from !== null && !copies.has(move.from)) return `${move.from} holds no copy to move`;
  if (move.drops !== null && !copies.has(move.drops)) return `${move.drops} holds no copy to drop`;
  if (move.drops === move.to) return `the move drops its own destination ${move.to}`;
  if ((move.role === 'follower') !== (move.step === 'joining')) {
    return `a ${move.role} move cannot be at step ${move.step}`;
  }
  if (move.role === 'leader' && move.from !== row.leader) {
    return `a leader move goes from the leader ${row.leader}, not from ${String(move.from)}`;
  }
  if (move.role === 'follower' && (move.to === row.leader || move.drops === row.leader)) {
    return 'a follower move names the leader';
  }
  if ((move.step === 'fenced') !== (row.state === 'draining')) {
    return `state ${row.state} does not fit step ${move.step}`;
  }
  return null;
}

/** What no write may do to the row before it. */
function illegalChange(
  current: Assignment | undefined,
  step: DecidedStep,
  { durable }: WriteContext,
): string | null {
  const { next } = step;
  if (current === undefined) return next.inSync.includes(next.leader) ? null : 'a new leader is not in sync';
  if (step.opensEpoch && !next.inSync.includes(next.leader)) return `leader ${next.leader} is not in sync`;
  if (!step.opensEpoch) {
    if (next.leader !== current.leader) return 'the leader changes without a new epoch';
    if ((next.state === 'draining') !== (current.state === 'draining')) {
      return 'the fence changes without a new epoch';
    }
  }
  if (
    current.move &&
    next.move &&
    (current.move.to !== next.move.to || current.move.role !== next.move.role)
  ) {
    return `a move to ${current.move.to} is in flight`;
  }
  if (!durable) return null;
  if (current.inSync.length > 0 && next.inSync.length === 0) {
    return `it takes away ${current.inSync.join(', ')}, which alone holds everything`;
  }
  // Only the shard's leader can know who is in sync: a decision takes copies out, never in.
  const raised = next.inSync.find((broker) => !current.inSync.includes(broker));
  return raised === undefined ? null : `${raised} is declared in sync, which only the leader can report`;
}

/** Every newly named broker must be declared, and be as it was when the step was decided. */
function unmetRequirement(
  current: Assignment | undefined,
  step: DecidedStep,
  { broker }: WriteContext,
): WriteRefusal | null {
  const declared = new Set(step.requires.map((need) => need.broker));
  const undeclared = newlyNamed(current, step.next).find((id) => !declared.has(id));
  if (undeclared !== undefined) {
    return { code: 'refused', detail: `${step.shard}: newly named ${undeclared} carries no condition` };
  }
  for (const need of step.requires) {
    const row = broker(need.broker);
    if (row === undefined) return stale(`${step.shard}: ${need.broker} is not registered`);
    if (row.incarnation !== need.incarnation) {
      return stale(
        `${step.shard}: ${need.broker} is at incarnation ${row.incarnation}, decided for ${need.incarnation}`,
      );
    }
    const fit = row.lifecycle === 'live' || (need.allowDraining && row.lifecycle === 'draining');
    if (!fit) return stale(`${step.shard}: ${need.broker} is ${row.lifecycle}`);
  }
  return null;
}

/** Copies leave, or leave the in-sync set, only where one in sync stays on a broker that serves: what leaves may be the last to hold a record. */
function losesHolder(
  current: Assignment | undefined,
  { shard, next }: DecidedStep,
  { broker, durable }: WriteContext,
): WriteRefusal | null {
  if (current === undefined || !durable) return null;
  const leaves =
    current.replicas.find((id) => !next.replicas.includes(id)) ??
    current.inSync.find((id) => !next.inSync.includes(id));
  if (leaves === undefined) return null;
  const serves = (id: string): boolean => ['live', 'draining'].includes(broker(id)?.lifecycle ?? 'left');
  if (next.inSync.some(serves)) return null;
  return stale(`${shard}: without ${leaves} no copy in sync is on a broker that serves`);
}

function newlyNamed(current: Assignment | undefined, next: DecidedAssignment): string[] {
  const named = next.replicas.filter((id) => current?.replicas.includes(id) !== true);
  if (next.leader !== current?.leader) named.push(next.leader);
  if (next.move !== null && next.move.to !== current?.move?.to) named.push(next.move.to);
  return named;
}

/** The destination must hold everything, and be the very process that was staged. */
function unfitCutOver(
  current: Assignment | undefined,
  step: DecidedStep,
  { broker, stagedIncarnation }: WriteContext,
): WriteRefusal | null {
  if (step.step !== 'cutOver' && step.step !== 'seat') return null;
  const move = current?.move;
  if (current === undefined || !move) {
    return { code: 'refused', detail: `${step.shard} has no move to finish` };
  }
  const { to } = move;
  if (!current.inSync.includes(to)) return stale(`${step.shard}: ${to} is not in sync`);
  if (step.step === 'seat') return null;
  const row = broker(to);
  if (row?.lifecycle !== 'live')
    return stale(`${step.shard}: ${to} is ${row?.lifecycle ?? 'not registered'}`);
  if (row.incarnation !== stagedIncarnation) {
    return stale(`${step.shard}: ${to} has registered anew since the move was staged`);
  }
  return null;
}

function overCap(
  current: Assignment | undefined,
  step: DecidedStep,
  { broker, copies }: WriteContext,
): WriteRefusal | null {
  for (const id of step.next.replicas) {
    if (current?.replicas.includes(id) === true) continue;
    const cap = broker(id)?.maxShards ?? null;
    if (cap !== null && copies(id) >= cap) {
      return { code: 'limit_exceeded', detail: `${step.shard}: ${id} is at maxShards ${cap}` };
    }
  }
  return null;
}

function noSlot(
  current: Assignment | undefined,
  step: DecidedStep,
  { slots, policy }: WriteContext,
): WriteRefusal | null {
  const { move } = step.next;
  if (move === null || current?.move) return null;
  const reason = slots.refusal(move, policy);
  return reason === null ? null : { code: 'limit_exceeded', detail: `${step.shard}: ${reason}` };
}

function stale(detail: string): WriteRefusal {
  return { code: 'stale', detail };
}
