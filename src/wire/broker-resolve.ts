import type { Clock } from '../../raft/index.ts';
import type { BrokerAnswers } from '../broker-protocol.ts';
import { parseResource } from '../command/index.ts';
import type { ControlPlane } from '../control-plane.ts';
import { EvenkeelError } from '../errors.ts';
import { shardOfKey } from '../jump-hash.ts';
import type { BrokerRequest } from './broker-requests.ts';

/** How long a linearizable answer, or a node that is behind, may take, ms. */
const WAIT_MS = 5_000;

/** Who leads a shard, by its number or by a key that belongs to it. */
export async function resolve(
  plane: ControlPlane,
  request: Extract<BrokerRequest, { type: 'resolve' }>,
): Promise<BrokerAnswers['resolve']> {
  if (request.linearizable) await plane.readBarrier(WAIT_MS);
  const { state } = plane;
  const name = parseResource(request.resource);
  if (name === null) {
    const message = `${JSON.stringify(request.resource.slice(0, 80))} names no resource: write kind:name, as in stream:orders`;
    throw new EvenkeelError('invalid_argument', message);
  }
  const key = `${name.kind}:${name.name}`;
  const resource = state.resources.get(key);
  if (resource === undefined) throw new EvenkeelError('not_found', `there is no resource ${key}`);
  const number = request.shard ?? shardOfKey(request.key ?? '', resource.shards);
  if (number >= resource.shards) {
    const message = `${key} has ${resource.shards} shards, numbered from 0: there is no shard ${number}`;
    throw new EvenkeelError('not_found', message);
  }
  const shard = `${key}/${number}`;
  const row = state.assignments.get(shard);
  if (row === undefined) throw new EvenkeelError('unavailable', `${shard} has not been placed yet; retry`);
  return {
    shard,
    leader: row.leader,
    addresses: state.brokers.get(row.leader)?.addresses ?? {},
    epoch: row.epoch,
    generation: row.generation,
    revision: state.revision,
  };
}

/** Resolves once this node has applied the revision; rejects with `unavailable` where it takes too long. */
export function waitForRevision(plane: ControlPlane, clock: Clock, revision: number): Promise<void> {
  if (plane.state.revision >= revision) return Promise.resolve();
  return new Promise((done, reject) => {
    const end = (): void => {
      clock.clearTimeout(timer);
      unsubscribe();
    };
    const late = (): void => {
      end();
      const here = plane.state.revision;
      reject(
        new EvenkeelError(
          'unavailable',
          `this node is at revision ${here}, not yet at ${revision}; retry or ask another`,
        ),
      );
    };
    const look = (): void => {
      if (plane.state.revision < revision) return;
      end();
      done();
    };
    const timer = clock.setTimeout(late, WAIT_MS);
    const unsubscribe = plane.feed.subscribe(plane.state.revision, look, look);
  });
}
