import {
  compareShards,
  resourceKey,
  shardKey,
  splitShard,
  type Assignment,
  type Broker,
  type MoveRole,
  type Policy,
  type Resource,
} from './model.ts';
import type { Reports, Snapshot, Step } from './plan-types.ts';
import type { SimCluster } from './sim-cluster.ts';

/** What happens to a simulated cluster from outside (docs/cluster-file.md, "Events"). `stream:x/*` names every shard. */
export type SimAction =
  | { readonly type: 'join'; readonly broker: Broker }
  | { readonly type: 'drain' | 'undrain' | 'down' | 'up' | 'remove'; readonly broker: string }
  | { readonly type: 'create'; readonly resource: Resource }
  | { readonly type: 'delete'; readonly resource: string }
  | {
      readonly type: 'setBroker';
      readonly id: string;
      readonly patch: Partial<Pick<Broker, 'zone' | 'maxShards' | 'weight'>>;
    }
  | {
      readonly type: 'setResource';
      readonly resource: string;
      readonly patch: Partial<Pick<Resource, 'shards' | 'replicationFactor' | 'zonePolicy' | 'labels'>>;
    }
  | { readonly type: 'setPolicy'; readonly patch: Partial<Policy> }
  | {
      readonly type: 'move';
      readonly shard: string;
      readonly role: MoveRole;
      readonly from: string | null;
      readonly to: string;
    }
  | { readonly type: 'cancel'; readonly shard: string }
  | { readonly type: 'inSync'; readonly shard: string; readonly inSync: readonly string[] };

/** An event that the cluster as it is then does not take. */
export class EventRefused extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'EventRefused';
  }
}

export interface MoveRequest {
  readonly shard: string;
  readonly role: MoveRole;
  /** The copy that goes, of a follower move; `null`: none, or the leader. */
  readonly from: string | null;
  readonly to: string;
}

/** What an operator's move is decided by. The answer is the step to write, or why there is none. */
export interface Operator {
  startMove(snapshot: Snapshot, reports: Reports, request: MoveRequest): Step | { readonly refused: string };
  cancelMove(snapshot: Snapshot, reports: Reports, shard: string): Step | { readonly refused: string };
}

/** Applies one event. Answers the steps that an operator's request made, already carried out. */
export function applyAction(cluster: SimCluster, action: SimAction, operator: Operator): readonly Step[] {
  cluster.phase++;
  if (action.type === 'move') {
    return rowsOf(cluster, action.shard).map(({ shard }) =>
      carryOut(cluster, operator.startMove(cluster.snapshot(), cluster.reports(), { ...action, shard })),
    );
  }
  if (action.type === 'cancel') {
    return rowsOf(cluster, action.shard).map(({ shard }) =>
      carryOut(cluster, operator.cancelMove(cluster.snapshot(), cluster.reports(), shard)),
    );
  }
  applyChange(cluster, action);
  return [];
}

function applyChange(
  cluster: SimCluster,
  action: Exclude<SimAction, { readonly type: 'move' | 'cancel' }>,
): void {
  switch (action.type) {
    case 'join':
      return join(cluster, action.broker);
    case 'drain':
    case 'undrain':
      return setDrain(cluster, action.broker, action.type === 'drain');
    case 'down':
      return down(cluster, action.broker);
    case 'up':
      return up(cluster, action.broker);
    case 'remove':
      return remove(cluster, action.broker);
    case 'create':
      return create(cluster, action.resource);
    case 'delete':
      return deleteResource(cluster, action.resource);
    case 'setBroker':
      cluster.brokers.set(action.id, { ...brokerOf(cluster, action.id), ...action.patch });
      return;
    case 'setResource':
      return setResource(cluster, action.resource, action.patch);
    case 'setPolicy':
      cluster.policy = { ...cluster.policy, ...action.patch };
      return;
    case 'inSync':
      for (const row of rowsOf(cluster, action.shard)) setInSync(cluster, row, action.inSync);
  }
}

function carryOut(cluster: SimCluster, answer: Step | { readonly refused: string }): Step {
  if ('refused' in answer) throw new EventRefused(answer.refused);
  cluster.carryOut(answer);
  return answer;
}

function join(cluster: SimCluster, broker: Broker): void {
  if (cluster.brokers.has(broker.id)) throw new EventRefused(`broker ${broker.id} is there already`);
  cluster.register({ ...broker, registeredAtMs: cluster.nowMs });
}

function setDrain(cluster: SimCluster, id: string, drain: boolean): void {
  const broker = brokerOf(cluster, id);
  const lifecycle = cluster.serves(id) ? (drain ? 'draining' : 'live') : broker.lifecycle;
  cluster.brokers.set(id, { ...broker, drain, lifecycle });
}

/** Silent from now on: its copies leave every in-sync set where another copy remains. */
function down(cluster: SimCluster, id: string): void {
  const broker = brokerOf(cluster, id);
  if (!cluster.serves(id)) throw new EventRefused(`broker ${id} is ${broker.lifecycle} already`);
  cluster.brokers.set(id, { ...broker, lifecycle: 'down', downSinceMs: cluster.nowMs });
  for (const row of cluster.rowsOn(id)) {
    const inSync = row.inSync.filter((copy) => copy !== id);
    if (inSync.length > 0 && inSync.length < row.inSync.length) cluster.rewrite(row, { inSync });
  }
}

/** Back with the same store: what it leads is opened anew, its other copies are in sync one pass later. */
function up(cluster: SimCluster, id: string): void {
  const broker = brokerOf(cluster, id);
  if (cluster.serves(id)) throw new EventRefused(`broker ${id} is ${broker.lifecycle}, not down`);
  cluster.register({
    ...broker,
    lifecycle: broker.drain ? 'draining' : 'live',
    incarnation: broker.incarnation + 1,
    registeredAtMs: cluster.nowMs,
    downSinceMs: null,
  });
  for (const row of cluster.rowsOn(id)) {
    if (!row.inSync.includes(id)) cluster.arriveAt(row.shard, id, cluster.pass + 2);
    if (row.leader !== id) continue;
    const move = row.move?.step === 'fenced' ? { ...row.move, step: 'staged' as const } : row.move;
    cluster.rewrite(row, { state: 'active', move }, true);
  }
}

function remove(cluster: SimCluster, id: string): void {
  brokerOf(cluster, id);
  const held = cluster.rowsOn(id).map((row) => row.shard);
  if (held.length > 0) {
    const some = `${held.slice(0, 5).join(', ')}${held.length > 5 ? ', …' : ''}`;
    throw new EventRefused(
      `broker ${id} still holds ${held.length} ${held.length === 1 ? 'shard' : 'shards'} (${some})`,
    );
  }
  cluster.brokers.delete(id);
}

function create(cluster: SimCluster, resource: Resource): void {
  const key = resourceKey(resource);
  if (cluster.resources.has(key)) throw new EventRefused(`resource ${key} is there already`);
  cluster.resources.set(key, resource);
}

function deleteResource(cluster: SimCluster, key: string): void {
  const resource = resourceAt(cluster, key);
  for (let number = 0; number < resource.shards; number++) cluster.forget(shardKey(resource, number));
  cluster.resources.delete(key);
}

function setResource(cluster: SimCluster, key: string, patch: Partial<Resource>): void {
  const resource = resourceAt(cluster, key);
  if (patch.shards !== undefined && patch.shards < resource.shards) {
    throw new EventRefused(`resource ${key} has ${resource.shards} shards: their number can only be raised`);
  }
  cluster.resources.set(key, { ...resource, ...patch });
}

function setInSync(cluster: SimCluster, row: Assignment, named: readonly string[]): void {
  const stray = named.find((id) => !row.replicas.includes(id));
  if (stray !== undefined) throw new EventRefused(`${row.shard}: ${stray} holds no copy`);
  cluster.rewrite(row, { inSync: row.replicas.filter((id) => named.includes(id)) });
}

function brokerOf(cluster: SimCluster, id: string): Broker {
  const broker = cluster.brokers.get(id);
  if (broker === undefined) throw new EventRefused(`there is no broker ${id}`);
  return broker;
}

function resourceAt(cluster: SimCluster, key: string): Resource {
  const resource = cluster.resources.get(key);
  if (resource === undefined) throw new EventRefused(`there is no resource ${key}`);
  return resource;
}

/** The assignments that a shard, or `<resource>/*`, names. */
function rowsOf(cluster: SimCluster, pattern: string): Assignment[] {
  const every = pattern.endsWith('/*') ? pattern.slice(0, -2) : null;
  if (every === null) {
    const row = cluster.assignments.get(pattern);
    if (row === undefined) throw new EventRefused(`${pattern} is no placed shard`);
    return [row];
  }
  resourceAt(cluster, every);
  return [...cluster.assignments.values()]
    .filter((row) => splitShard(row.shard).resource === every)
    .sort((a, b) => compareShards(a.shard, b.shard));
}
