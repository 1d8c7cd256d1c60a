import { plan } from '../placement/index.ts';
import {
  RaftNode,
  type Clock,
  type Random,
  type RaftStorage,
  type StateMachine,
  type Transport,
} from '../raft/index.ts';
import { Machine } from './apply/index.ts';
import { findGroup, type Group } from './bootstrap.ts';
import type { ServeConfig } from './config.ts';
import { Control, InlinePlanner, type PlannerHost } from './control/index.ts';
import type { Disk } from './disk.ts';
import { FrontDoor } from './front-door.ts';
import { handOver, serveTransfer } from './hand-over.ts';
import { openDataDirectory, type DataDirectory } from './log/index.ts';
import type { Logger } from './logger.ts';
import { serveSnapshot } from './member-snapshot.ts';
import { createMetrics } from './metrics.ts';
import type { ProcessMetrics } from './metrics-process.ts';
import type { Net } from './net.ts';
import { oneATurn } from './one-a-turn.ts';
import { askPeer, Plane, serveToPeers } from './plane.ts';
import type { StateView } from './state/index.ts';
import { VERSION } from './version.ts';
import { ChangeRing, type ChangeFeed } from './watch/index.ts';
import { createAdminSurface, createBrokerSurface, PeerTransport } from './wire/index.ts';

export interface NodeOptions {
  readonly config: ServeConfig;
  readonly clock: Clock;
  readonly net: Net;
  readonly disk: Disk;
  readonly random: Random;
  readonly logger: Logger;
  /** Where plans are made; on this thread unless given. */
  readonly planner?: (state: StateView, feed: ChangeFeed, clock: Clock) => PlannerHost;
  /** Shown with the node's own metrics, where it has the process to itself. */
  readonly processMetrics?: ProcessMetrics;
  /** Lets a harness look at, or come between, the parts that consensus rests on. */
  readonly observe?: {
    storage(storage: RaftStorage): RaftStorage;
    transport(transport: Transport): Transport;
    stateMachine(machine: StateMachine, view: StateView): StateMachine;
  };
  /** The node has stopped itself: a write to disk failed or an invariant broke. */
  onFatal(error: Error): void;
}

/** One control-plane node, serving. */
export interface RunningNode {
  readonly plane: Plane;
  readonly raft: RaftNode;
  /** For brokers, RPC and HTTP, as bound. */
  readonly address: string;
  readonly peerAddress: string;
  /** Hands its leadership over if it leads, tells its clients to go elsewhere, and closes everything. */
  stop(): Promise<void>;
}

/** What was started, to be stopped in reverse. */
class Stoppers {
  readonly #steps: (() => Promise<void> | void)[] = [];

  add(step: () => Promise<void> | void): void {
    this.#steps.push(step);
  }

  async run(): Promise<void> {
    for (let step = this.#steps.pop(); step !== undefined; step = this.#steps.pop()) await step();
  }
}

/**
 * Builds every part of one node and starts it; resolves once it serves. Rejects with the EvenkeelError that says
 * why it cannot (`address_in_use`, `directory_in_use`, `wrong_directory`, `corrupt`, …); nothing is left open then.
 */
export async function startNode(options: NodeOptions): Promise<RunningNode> {
  const stoppers = new Stoppers();
  try {
    return await build(options, stoppers);
  } catch (error) {
    await stoppers.run();
    throw error;
  }
}

async function build(options: NodeOptions, stoppers: Stoppers): Promise<RunningNode> {
  const { config, clock, net, disk, random, logger } = options;
  const { nodeId: memberId, clusterId } = config;
  const directory = await openDataDirectory({ disk, random, directory: config.dataDir, clusterId, memberId });
  let storage: RaftStorage | null = directory.storage;
  // Until Raft owns the storage and closes it.
  stoppers.add(() => storage?.close());
  const door = await FrontDoor.open(net, config.listen);
  stoppers.add(() => door.close());
  const peers = createPeers(options, directory);
  await peers.start();
  stoppers.add(() => peers.stop());
  const group = await joinGroup(options, directory, peers);

  const feed = new ChangeRing();
  const machine = new Machine(feed);
  const raft = await startRaft(options, { directory, peers, group, machine });
  storage = null;
  stoppers.add(() => raft.stop());
  const addresses = new Map(group.members.map(({ id, address }) => [id, address]));
  const plane = new Plane({
    nodeId: memberId,
    clusterId,
    clock,
    raft,
    state: machine.view,
    feed,
    peers,
    addresses,
  });

  serveTransfer(plane, { raft, clock });
  serveSnapshot(plane, raft);

  let draining = false;
  let storageOpen = true;
  raft.onFatal((error) => {
    storageOpen = false;
    logger.fatal({ error: error.message, term: raft.status().term }, 'the node stops itself');
    options.onFatal(error);
  });
  // Raft and its sockets take every turn; what all others cut their work into shares the turns between them.
  const shared = oneATurn(clock);
  const planner = options.planner?.(machine.view, feed, shared) ?? new InlinePlanner(machine.view, plan);
  const control = new Control({ plane, clock: shared, timings: config.broker, planner, log: logger });
  control.start();
  stoppers.add(() => control.stop());
  const brokers = createBrokerSurface({ plane, clock: shared });
  stoppers.add(() => brokers.drain());
  const metrics = createMetrics({ plane, control, clock: shared, ofProcess: options.processMetrics ?? null });
  const admin = createAdminSurface({
    plane,
    clock: shared,
    health: { storageOpen: () => storageOpen, draining: () => draining },
    metrics,
    version: VERSION,
    onFault: (error, where) =>
      logger.error({ error: String(error), where }, 'a request failed for a fault of ours'),
  });
  stoppers.add(() => admin.close());
  door.serve({ broker: brokers.route, rpc: admin.rpcRoute, http: admin.http });
  logLeadership(plane, logger);
  return {
    plane,
    raft,
    address: door.address,
    peerAddress: peers.address,
    stop: async () => {
      draining = true;
      await handOver({ raft, clock }, logger);
      await stoppers.run();
    },
  };
}

function createPeers(
  { config, net, clock, random, logger }: NodeOptions,
  directory: DataDirectory,
): PeerTransport {
  const bootId = [0, 1].map(() => random.nextUint32().toString(16).padStart(8, '0')).join('');
  return new PeerTransport({
    ...{ net, clock, random, logger },
    self: { ...directory.identity, bootId, bootCount: directory.bootCount },
    listen: config.peerListen,
    peers: config.members,
  });
}

async function joinGroup(
  { config, clock, disk, logger }: NodeOptions,
  directory: DataDirectory,
  peers: PeerTransport,
): Promise<Group> {
  const group = await findGroup({
    disk,
    clock,
    directory: config.dataDir,
    memberId: config.nodeId,
    directoryId: directory.identity.directoryId,
    hasState: directory.hasState,
    initialClusterState: config.initialClusterState,
    members: [...config.members].map(([id, address]) => ({ id, address })),
    ask: (peer, method, params, deadlineMs) => askPeer(peers, peer, method, params, deadlineMs),
    serve: (method, service) => serveToPeers(peers, clock, method, service),
    onWaiting: (reason) => logger.info({}, reason),
  });
  peers.setDirectories(new Map(group.members.map(({ id, directoryId }) => [id, directoryId])));
  peers.setPeers(new Map(group.members.map(({ id, address }) => [id, address])));
  return group;
}

function startRaft(
  { config, clock, random, observe }: NodeOptions,
  parts: { directory: DataDirectory; peers: PeerTransport; group: Group; machine: Machine },
): Promise<RaftNode> {
  const { directory, peers, group, machine } = parts;
  const voters = group.members.map(({ id }) => id);
  return RaftNode.start({
    id: config.nodeId,
    configuration: { voters, outgoing: [], learners: [], learnersNext: [] },
    storage: observe?.storage(directory.storage) ?? directory.storage,
    transport: observe?.transport(peers) ?? peers,
    stateMachine: observe?.stateMachine(machine, machine.view) ?? machine,
    clock,
    random,
    limits: config.raft,
  });
}

function logLeadership(plane: Plane, logger: Logger): void {
  let seen = '';
  plane.onLeadership(({ term, leaderId, established }) => {
    const now = `${term} ${leaderId} ${established}`;
    if (now === seen) return;
    seen = now;
    const index = plane.state.appliedIndex;
    if (established) logger.info({ term, index }, 'this node leads');
    else
      logger.info(
        { term, index, leader: leaderId },
        leaderId === null ? 'no leader is known' : `${leaderId} leads`,
      );
  });
}
