import { applyAll } from '../../support/apply-all.ts';
import type { Assignment, Broker, Move, Resource } from '../../../placement/index.ts';
import { DEFAULT_POLICY } from '../../../placement/index.ts';
import { Machine } from '../../../src/apply/index.ts';
import {
  COMMAND_VERSION,
  encodeCommand,
  type Command,
  type CommandResult,
  type PlacementRow,
  type RowResult,
} from '../../../src/command/index.ts';
import type { AssignmentRow, BrokerRow } from '../../../src/state/index.ts';
import { ChangeRing } from '../../../src/watch/index.ts';
import type { Entry } from '../../../raft/index.ts';

/** A machine, its ring, and the log that made it: commands go in as entries, as they do on a member. */
export class Harness {
  readonly ring: ChangeRing;
  readonly machine: Machine;
  readonly log: Entry[] = [];
  timeMs = 0;

  constructor(ring = new ChangeRing()) {
    this.ring = ring;
    this.machine = new Machine(ring);
  }

  get state() {
    return this.machine.view;
  }

  do(command: Command, request: { session: number; n: number } | null = null): CommandResult {
    const envelope = { version: COMMAND_VERSION, timeMs: this.timeMs, request, inTerm: null, command };
    return this.append('command', encodeCommand(envelope)) as CommandResult;
  }

  append(kind: Entry['kind'], data: Uint8Array): CommandResult | null {
    const entry: Entry = { index: this.state.appliedIndex + 1, term: 1, kind, data };
    const [result] = applyAll(this.machine, [entry]);
    this.log.push(entry);
    return result ?? null;
  }

  /** The value of a command that must be accepted. */
  ok(command: Command): unknown {
    const result = this.do(command);
    if (!result.ok) throw new Error(`${command.type}: ${result.error.code}: ${result.error.message}`);
    return result.value;
  }

  /** The error of a command that must be refused. */
  refused(command: Command): { code: string; message: string } {
    const result = this.do(command);
    if (result.ok) throw new Error(`${command.type} was accepted`);
    return result.error;
  }

  register(id: string, over: Partial<Registration> = {}): { incarnation: number; lifecycle: string } {
    return this.ok({
      type: 'registerBroker',
      broker: {
        id,
        zone: null,
        addresses: { client: `${id}:9000` },
        maxShards: null,
        weight: 1,
        labels: {},
        storeId: `store-${id}`,
        starts: null,
        ...over,
      },
    }) as { incarnation: number; lifecycle: string };
  }

  create(name: string, over: Partial<Resource> = {}): void {
    this.ok({ type: 'createResource', resource: resource(name, over) });
  }

  /** Writes one decided row and answers its result. */
  place(over: Partial<PlacementRow> & { next: PlacementRow['next'] }): RowResult {
    const [result] = this.ok({ type: 'placement', rows: [this.row(over)] }) as RowResult[];
    if (result === undefined) throw new Error('no result');
    return result;
  }

  /** A decided row for the shard as it is now, with the conditions a planner would give it. */
  row(over: Partial<PlacementRow> & { next: PlacementRow['next'] }): PlacementRow {
    const shard = over.shard ?? 'stream:s/0';
    const current = this.state.assignments.get(shard);
    const named = new Set([...over.next.replicas, over.next.leader]);
    return {
      step: current === undefined ? 'place' : 'stage',
      shard,
      role: 'leader',
      from: null,
      to: over.next.leader,
      drops: null,
      reason: 'new',
      copies: false,
      expect: current?.generation ?? 0,
      requires: [...named].map((broker) => ({
        broker,
        incarnation: this.state.brokers.get(broker)?.incarnation ?? 0,
        allowDraining: false,
      })),
      opensEpoch: current === undefined,
      resourceRevision:
        this.state.resources.get(shard.slice(0, shard.lastIndexOf('/')))?.createdRevision ?? 0,
      rule: 'test',
      detail: 'by the test',
      ...over,
    };
  }

  report(broker: string, shards: Reported[]): string[] {
    const incarnation = this.state.brokers.get(broker)?.incarnation ?? 0;
    const value = this.ok({
      type: 'report',
      broker,
      incarnation,
      shards: shards.map((s) => ({
        shard: s.shard ?? 'stream:s/0',
        generation: s.generation ?? this.assignment(s.shard).generation,
        inSync: s.inSync ?? null,
        drained: s.drained ?? false,
      })),
    });
    return (value as RowResult[]).map((row) => row.result);
  }

  confirm(broker: string, shard = 'stream:s/0', generation = this.assignment(shard).generation): string {
    const incarnation = this.state.brokers.get(broker)?.incarnation ?? 0;
    const value = this.ok({ type: 'confirm', broker, incarnation, shards: [{ shard, generation }] });
    return (value as RowResult[])[0]?.result ?? '';
  }

  assignment(shard = 'stream:s/0'): AssignmentRow {
    const row = this.state.assignments.get(shard);
    if (row === undefined) throw new Error(`${shard} has no assignment`);
    return row;
  }

  broker(id: string): BrokerRow {
    const row = this.state.brokers.get(id);
    if (row === undefined) throw new Error(`there is no broker ${id}`);
    return row;
  }
}

interface Reported {
  shard?: string;
  generation?: number;
  inSync?: string[];
  drained?: boolean;
}

type Registration = Extract<Command, { type: 'registerBroker' }>['broker'];

export function resource(name: string, over: Partial<Resource> = {}): Resource {
  return {
    kind: 'stream',
    name,
    shards: 1,
    replicationFactor: 2,
    durable: true,
    zonePolicy: null,
    labels: {},
    ...over,
  };
}

export function brokerRow(id: string, over: Partial<Broker> = {}): Broker {
  return {
    id,
    zone: null,
    lifecycle: 'live',
    drain: false,
    maxShards: null,
    weight: 1,
    incarnation: 0,
    registeredAtMs: 0,
    downSinceMs: null,
    ...over,
  };
}

export function assignmentRow(shard: string, replicas: string[], over: Partial<Assignment> = {}): Assignment {
  return {
    shard,
    leader: replicas[0] ?? '',
    replicas,
    inSync: replicas,
    generation: 1,
    epoch: 1,
    state: 'active',
    failedMoves: 0,
    move: null,
    ...over,
  };
}

export function importOf(
  rows: { brokers?: Broker[]; resources?: Resource[]; assignments?: Assignment[] },
  over: Partial<Extract<Command, { type: 'importCommit' }>> = {},
): [Command, Command] {
  const importId = over.importId ?? 'i1';
  return [
    { type: 'importPart', importId, part: 0, brokers: [], resources: [], assignments: [], ...rows },
    {
      type: 'importCommit',
      importId,
      parts: 1,
      timeMs: null,
      policy: DEFAULT_POLICY,
      overwrite: false,
      ...over,
    },
  ];
}

/** `next` of a decided row: a shard led by the first of its copies, all in sync. */
export function decided(replicas: string[], over: Partial<PlacementRow['next']> = {}): PlacementRow['next'] {
  return {
    leader: replicas[0] ?? '',
    replicas,
    inSync: replicas,
    state: 'assigning',
    failedMoves: 0,
    move: null,
    ...over,
  };
}

/** A hand-over of b1's leadership to b2, which holds a copy. */
export const staged = (over: Partial<Move> = {}): Move => ({
  role: 'leader',
  from: 'b1',
  to: 'b2',
  step: 'staged',
  reason: 'balance',
  copied: false,
  drops: null,
  startedAtMs: 1_000,
  progressAtMs: 1_000,
  ...over,
});
