import type { RaftNode } from '../../raft/index.ts';
import type { ServeConfig } from '../config.ts';
import { DEFAULT_BROKER_TIMINGS } from '../control/index.ts';
import { EvenkeelError } from '../errors.ts';
import { SILENT_LOGGER } from '../logger.ts';
import type { Plane } from '../plane.ts';
import { startNode, type RunningNode } from '../server.ts';
import { Broker, DATA_ADDRESS, openBrokerDirectory } from '../broker/index.ts';
import type { BootContext, Member, PlacementView, RegisterValue, SimKit, WriteRequest } from './cluster.ts';
import { checkConditions } from './condition-checks.ts';
import type { CopyChecks, RunningBroker } from './copy-checks.ts';
import { REPLICATION_FACTOR, SHARDS } from './draw-brokers.ts';
import { RowChecks } from './row-checks.ts';
import { unsettledPart } from './settled.ts';
import { tapStateMachine, tapStorage, tapTransport } from './taps.ts';
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
  const { id, members, process, net, disk, maxShards } = context;
  const broker = new Broker({
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
  return new ServerMember(node, process.clock);
}

function checkRows({ state, feed }: Plane, world: SimWorld, copies: CopyChecks): void {
  const checks = new RowChecks(state);
  const guarded = (check: () => void): void => {
    try {
      check();
    } catch (error) {
      world.fail(error as Error);
    }
  };
  const follow = (): void => {
    guarded(() => {
      for (const row of state.assignments.list()) copies.applied(row);
    });
    feed.subscribe(
      state.revision,
      (set) =>
        guarded(() => {
          checks.applied(set);
          for (const change of set.changes)
            if (change.kind === 'assignment') copies.applied(change.assignment);
        }),
      follow,
    );
  };
  follow();
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

  constructor(node: RunningNode, clock: { now(): number }) {
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
        replicationFactor: REPLICATION_FACTOR,
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
