import { BROKER_METHODS } from './rpc-broker.ts';
import { CLUSTER_METHODS } from './rpc-cluster.ts';
import { HEALTH_METHODS } from './rpc-health.ts';
import { IMPORT_METHODS } from './rpc-import.ts';
import { MOVE_METHODS } from './rpc-move.ts';
import { PLACEMENT_METHODS } from './rpc-placement.ts';
import { RAFT_METHODS } from './rpc-raft.ts';
import { RESOURCE_METHODS } from './rpc-resource.ts';
import { SESSION_METHODS } from './rpc-session.ts';
import { SHARD_METHODS } from './rpc-shard.ts';
import type { RpcMethod } from './rpc-types.ts';
import { WATCH_METHODS } from './rpc-watch.ts';

/** Every method, once: JSON-RPC over WebSocket, JSON-RPC by POST and plain HTTP are made from this list. */
export const RPC_METHODS: readonly RpcMethod[] = [
  ...CLUSTER_METHODS,
  ...HEALTH_METHODS,
  ...RAFT_METHODS,
  ...BROKER_METHODS,
  ...RESOURCE_METHODS,
  ...SHARD_METHODS,
  ...MOVE_METHODS,
  ...PLACEMENT_METHODS,
  ...SESSION_METHODS,
  ...IMPORT_METHODS,
  ...WATCH_METHODS,
];

const byName = new Map(RPC_METHODS.map((method) => [method.name, method]));

export function findMethod(name: string): RpcMethod | undefined {
  return byName.get(name);
}
