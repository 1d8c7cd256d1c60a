import { resourceKey, type ClusterFile, type SimEvent } from '../../placement/index.ts';
import { MAX_BROKERS, MAX_RESOURCES, MAX_SHARDS } from '../command/index.ts';
import { EvenkeelError } from '../errors.ts';

/**
 * Throws `limit_exceeded` that names the first event by which the cluster would hold more brokers, resources or shards
 * than one may. Events that a cluster does not take by then end a simulation anyway.
 */
export function checkEventLimits(file: ClusterFile, events: readonly SimEvent[], name: string): void {
  const brokers = new Set(file.brokers.map((row) => row.id));
  const resources = new Map(file.resources.map((row) => [resourceKey(row), row.shards]));
  let shards = file.resources.reduce((sum, row) => sum + row.shards, 0);
  const setShards = (key: string, count: number): void => {
    shards += count - (resources.get(key) ?? 0);
    resources.set(key, count);
  };
  events.forEach(({ action }, i) => {
    if (action.type === 'join') brokers.add(action.broker.id);
    else if (action.type === 'remove') brokers.delete(action.broker);
    else if (action.type === 'create') setShards(resourceKey(action.resource), action.resource.shards);
    else if (action.type === 'delete') {
      setShards(action.resource, 0);
      resources.delete(action.resource);
    } else if (action.type === 'setResource' && action.patch.shards !== undefined) {
      setShards(action.resource, action.patch.shards);
    }
    over(`${name}[${i}].${action.type}`, 'brokers', brokers.size, MAX_BROKERS);
    over(`${name}[${i}].${action.type}`, 'resources', resources.size, MAX_RESOURCES);
    over(`${name}[${i}].${action.type}`, 'shards in all', shards, MAX_SHARDS);
  });
}

function over(place: string, what: string, count: number, limit: number): void {
  if (count <= limit) return;
  throw new EvenkeelError('limit_exceeded', `${place}: ${count} ${what}, at most ${limit} are allowed`);
}
