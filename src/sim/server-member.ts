import { DEFAULT_POLICY } from '../../placement/index.ts';
import type { RaftNode } from '../../raft/index.ts';
import type { ServeConfig } from '../config.ts';
import { DEFAULT_BROKER_TIMINGS } from '../control/index.ts';
import { EvenkeelError } from '../errors.ts';
import { SILENT_LOGGER } from '../logger.ts';
import type { Plane } from '../plane.ts';
import { startNode, type RunningNode } from '../server.ts';
import { Broker, DATA_ADDRESS, openBrokerDirectory } from '../broker/index.ts';
import type { BootContext, Member, PlacementView, RegisterValue, SimKit, WriteRequest } from './kit.ts';
import { checkConditions } from './condition-checks.ts';
import type { CopyChecks, RunningBroker } from './copy-checks.ts';
import { brokerNet } from './broker-net.ts';
import { SHARDS } from './draw-brokers.ts';
import { reimport } from './reimport.ts';
import { RowChecks } from './row-checks.ts';
import { unsettledPart } from './settled.ts';
import { tapStateMachine, tapStorage, tapTransport } from './taps.ts';
import type { AssignmentRow } from '../state/index.ts';
import type { SimWorld } from './world.ts';

const CLUSTER_ID = 'simulated';
const PEER_PORT = 7501;
const PORT = 7401;
const BROKER_PORT = 9001;
const DATA_DIR = 'data';
const TRANSFER_MS = 2_000;
/** A register is this label of a resource. */
const LABEL = 'value';

/** The whole system: nodes as `evenkeel serve` runs them, and reference brokers. */
export const SERVER_KIT: SimKit = { member: bootNode, broker: { boot: bootBroker, stored: storedRecords } };

async function bootBroker(context: BootContext): Promise<RunningBroker> {
  const { id, members, process, disk, maxShards, copyChecks } = context;
  const net = brokerNet(context.net, process, context.line, (type, shard) =>
    guarded(process.world, () => copyChecks.served(id, type, shard, broker.serving.includes(shard))),
  );
  const broker: Broker = new Broker({
    id,
    clusterId: CLUSTER_ID,
    endpoints: members.map((member) => `${member}:${PORT}`),
    listen: `${id}:${BROKER_PORT}`,
    dataDir: DATA_DIR,
    copyRate: 1_000,
    seedRecords: 0,
    ...(maxShards === null ? {} : { maxShards }),
    net,
    clock: process.clock,
    random: process.random,
    disk,
    log: SILENT_LOGGER,
    onStopped: (error) => context.onFatal(error),
  });
  await broker.start();
  return {
    get description() {
      return `incarnation ${broker.incarnation}, serves ${broker.serving.length} shards`;
    },
    get isRegistered() {
      return broker.incarnation !== null;
    },
    get serving() {
      return broker.serving;
    },
    endOf: (shard) => broker.offsets(shard)?.end ?? 0,
  };
}

async function storedRecords({ id, disk, process }: BootContext): Promise<ReadonlyMap<string, string[]>> {
  const options = { random: process.random, clusterId: CLUSTER_ID, id };
  const { records } = await openBrokerDirectory(disk, DATA_DIR, options);
  const stored = new Map<string, string[]>();
  for (const shard of records.shards) {
    const log = records.get(shard);
    const rows = (await log?.read(0, log.end)) ?? [];
    stored.set(
      shard,
      rows.map(({ payload }) => Buffer.from(payload).toString('utf8')),
    );
  }
  return stored;
}

async function bootNode(context: BootContext): Promise<Member> {
  const { process, net, disk, tap } = context;
  const node = await startNode({
    config: configOf(context),
    clock: process.clock,
    net,
    disk,
    random: process.random,
    logger: SILENT_LOGGER,
    observe: {
      storage: (storage) => tapStorage(storage, tap),
      transport: (transport) => tapTransport(transport, tap),
      stateMachine: (machine, view) => {
        const checked = checkConditions(machine, view, (error) => process.world.fail(error));
        return tapStateMachine(checked, () => view.stateHash, tap);
      },
    },
    onFatal: (error) => context.onFatal(error),
  });
  checkRows(node.plane, process.world, context.copyChecks);
  return new ServerMember(node, process.clock, context.replicationFactor);
}

function checkRows({ state, feed }: Plane, world: SimWorld, copies: CopyChecks): void {
  const checks = new RowChecks(state);
  const follow = (): void => {
    guarded(world, () => {
      for (const row of state.assignments.list()) copies.applied(row);
    });
    feed.subscribe(
      state.revision,
      (set) =>
        guarded(world, () => {
          checks.applied(set);
          for (const change of set.changes)
            if (change.kind === 'assignment') copies.applied(change.assignment);
        }),
      follow,
    );
  };
  follow();
}

function guarded(world: SimWorld, check: () => void): void {
  try {
    check();
  } catch (error) {
    world.fail(error as Error);
  }
}

function configOf({ id, members, settings }: BootContext): ServeConfig {
  const { electionTimeoutMs, heartbeatMs, limits } = settings;
  const raft = { electionTimeoutMs, heartbeatMs, ...limits, snapshotRetryMs: 2 * electionTimeoutMs };
  return {
    nodeId: id,
    clusterId: CLUSTER_ID,
    members: new Map(members.map((member) => [member, `${member}:${PEER_PORT}`])),
    listen: `${id}:${PORT}`,
    peerListen: `${id}:${PEER_PORT}`,
    dataDir: 'data',
    initialClusterState: 'new',
    logLevel: 'silent',
    raft,
    broker: DEFAULT_BROKER_TIMINGS,
  };
}

class ServerMember implements Member, PlacementView {
  readonly #node: RunningNode;
  readonly #raft: RaftNode;
  readonly #clock: { now(): number };
  readonly #replicationFactor: number;

  constructor(node: RunningNode, clock: { now(): number }, replicationFactor: number) {
    this.#replicationFactor = replicationFactor;
    this.#node = node;
    this.#raft = node.raft;
    this.#clock = clock;
  }

  get placement(): PlacementView {
    return this;
  }

  addressOf(shard: string): string | null {
    const { assignments, brokers } = this.#node.plane.state;
    const leader = assignments.get(shard)?.leader;
    return leader === undefined ? null : (brokers.get(leader)?.addresses[DATA_ADDRESS] ?? null);
  }

  isSpare(broker: string): boolean {
    const { assignments, brokers } = this.#node.plane.state;
    const isUp = [...brokers.values()].every(({ lifecycle }) => lifecycle !== 'down');
    const isHeldTwice = assignments
      .list()
      .every(({ inSync }) => !inSync.includes(broker) || inSync.length > 1);
    return isUp && isHeldTwice;
  }

  async setDrain(broker: string, drain: boolean, deadlineMs: number): Promise<void> {
    await this.#node.plane.propose({ type: 'setDrain', broker, drain }, { deadlineMs });
  }

  lost(): string[] {
    const { assignments, brokers } = this.#node.plane.state;
    if ([...brokers.values()].some(({ lifecycle }) => lifecycle !== 'live')) return [];
    return assignments
      .list()
      .filter(({ inSync }) => inSync.length === 0)
      .map(({ shard }) => shard);
  }

  async abandon(shard: string, deadlineMs: number): Promise<void> {
    await this.#node.plane.propose({ type: 'abandonShard', shard, expectedGeneration: null }, { deadlineMs });
  }

  get clusterTimeMs(): number {
    return this.#node.plane.clusterTimeMs();
  }

  get shards(): readonly AssignmentRow[] {
    return this.#node.plane.state.assignments.list();
  }

  ledBy(broker: string): string[] {
    const rows = this.#node.plane.state.assignments.list();
    return rows.filter(({ leader }) => leader === broker).map(({ shard }) => shard);
  }

  async setPolicy(changes: Readonly<Record<string, number>> | null, deadlineMs: number): Promise<void> {
    const patch = changes ?? DEFAULT_POLICY;
    await this.#node.plane.propose({ type: 'setPolicy', expectedRevision: null, patch }, { deadlineMs });
  }

  async cancelMoves(deadlineMs: number): Promise<void> {
    const { state } = this.#node.plane;
    for (const { shard } of [...state.moving.values()]) {
      const params = { shard, expectedGeneration: null, request: null };
      await this.#node.plane.askLeader('move.cancel', params, deadlineMs);
    }
  }

  async reimport(byMs: number, deadlineMs: number): Promise<void> {
    await reimport(this.#node.plane, byMs, deadlineMs);
  }

  unsettled(): string | null {
    return unsettledPart(this.#node.plane.state);
  }

  get description(): string {
    const { role, term, leaderId, commitIndex, appliedIndex, lastIndex } = this.#raft.status();
    return `${role} t${term} of ${leaderId ?? 'nobody'}, log ${lastIndex}, commit ${commitIndex}, applied ${appliedIndex}`;
  }

  get leads(): boolean {
    return this.#raft.status().role === 'leader';
  }

  get term(): number {
    return this.#raft.status().term;
  }

  get appliedIndex(): number {
    return this.#node.plane.state.appliedIndex;
  }

  get stateHash(): string {
    return this.#node.plane.state.stateHash;
  }

  async prepare(keys: readonly string[], deadlineMs: number): Promise<void> {
    for (const name of keys) {
      const resource = {
        kind: 'stream' as const,
        name,
        shards: SHARDS,
        replicationFactor: this.#replicationFactor,
        durable: true,
        zonePolicy: null,
        labels: {},
      };
      try {
        await this.#node.plane.propose({ type: 'createResource', resource }, { deadlineMs });
      } catch (error) {
        // Somebody else was faster, or an earlier try.
        if (!(error instanceof EvenkeelError && error.code === 'already_exists')) throw error;
      }
    }
  }

  async openSession(deadlineMs: number): Promise<number> {
    const opened = await this.#node.plane.propose({ type: 'openSession' }, { deadlineMs });
    return (opened.value as { session: number }).session;
  }

  async write(write: WriteRequest, deadlineMs: number): Promise<void> {
    const { session, n, key, value, expectedRevision } = write;
    const labels = { [LABEL]: value };
    await this.#node.plane.propose(
      { type: 'alterResource', kind: 'stream', name: key, expectedRevision, labels },
      { deadlineMs, request: { session, n } },
    );
  }

  async read(key: string, deadlineMs: number): Promise<RegisterValue> {
    await this.#node.plane.readBarrier(deadlineMs);
    const row = this.#node.plane.state.resources.get(`stream:${key}`);
    return { value: row?.labels[LABEL] ?? null, revision: row?.revision ?? 0 };
  }

  async transferLeadership(to: string): Promise<void> {
    await this.#raft.transferLeadership(to, this.#clock.now() + TRANSFER_MS);
  }

  async snapshotNow(): Promise<void> {
    await this.#raft.snapshotNow();
  }

  checkBounds(): void {
    const { id, pendingProposals, pendingReads } = this.#raft.status();
    if (pendingProposals > MAX_PENDING) throw new Error(`bound: ${id} holds ${pendingProposals} proposals`);
    if (pendingReads > MAX_PENDING) throw new Error(`bound: ${id} holds ${pendingReads} reads`);
  }
}

/** Far fewer requests are ever under way in a run. */
const MAX_PENDING = 500;
