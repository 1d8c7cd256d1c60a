import { z } from 'zod';
import { brokerRow, compareStrings } from '../../placement/index.ts';
import { EvenkeelError } from '../errors.ts';
import type { BrokerRow } from '../state/index.ts';
import { inSlices, perRevisionInSlices } from './rpc-per-revision.ts';
import { brokerRowSchema, counterSchema, idSchema } from './rpc-schemas.ts';
import { defineRead, defineWrite, type RpcContext } from './rpc-types.ts';

const brokerItem = brokerRowSchema.extend({
  leaders: counterSchema,
  copies: counterSchema,
  addresses: z.record(z.string(), z.string()),
  labels: z.record(z.string(), z.string()),
});
export type BrokerItem = z.output<typeof brokerItem>;
const byId = { id: idSchema };

interface Load {
  leaders: number;
  copies: number;
}

/** What every broker holds now, moves in flight as they stand. */
const loads = perRevisionInSlices(async (state, clock): Promise<ReadonlyMap<string, Load>> => {
  const held = new Map<string, Load>();
  for (const id of state.brokers.keys()) held.set(id, { leaders: 0, copies: 0 });
  // Rows are immutable: a list of them is the state as it is now.
  await inSlices(state.assignments.list(), clock, ({ leader, replicas }) => {
    for (const broker of replicas) {
      const load = held.get(broker);
      if (load === undefined) continue;
      load.copies += 1;
      if (broker === leader) load.leaders += 1;
    }
  });
  return held;
});

function brokerView(row: BrokerRow, held: ReadonlyMap<string, Load>): BrokerItem {
  const { leaders, copies } = held.get(row.id) ?? { leaders: 0, copies: 0 };
  return { ...brokerRow(row), leaders, copies, addresses: row.addresses, labels: row.labels };
}

const list = defineRead({
  name: 'broker.list',
  summary: 'Every broker, with what it leads and holds',
  params: {},
  answer: { items: z.array(brokerItem) },
  http: { verb: 'GET', path: '/brokers' },
  async handler({ plane: { state }, clock, admitLarge }) {
    await admitLarge();
    const { revision } = state;
    const rows = [...state.brokers.values()].sort((a, b) => compareStrings(a.id, b.id));
    const held = await loads(state, clock);
    return { revision, items: rows.map((row) => brokerView(row, held)) };
  },
});

const show = defineRead({
  name: 'broker.show',
  summary: 'One broker, with what it leads and holds',
  params: byId,
  answer: { broker: brokerItem },
  http: { verb: 'GET', path: '/brokers/{id}' },
  async handler({ plane: { state }, clock }, { id }) {
    const { revision } = state;
    const row = state.brokers.get(id);
    if (row === undefined) throw new EvenkeelError('not_found', `no broker "${id}"`);
    return { revision, broker: brokerView(row, await loads(state, clock)) };
  },
});

async function setDrain(context: RpcContext, broker: string, drain: boolean): Promise<{ revision: number }> {
  const { revision } = await context.propose({ type: 'setDrain', broker, drain });
  return { revision };
}

const drain = defineWrite({
  name: 'broker.drain',
  summary: 'Give the broker nothing more and move everything off it; survives its restarts',
  params: byId,
  answer: {},
  http: { verb: 'POST', path: '/brokers/{id}/drain' },
  handler: (context, { id }) => setDrain(context, id, true),
});

const undrain = defineWrite({
  name: 'broker.undrain',
  summary: 'Let the broker take shards again',
  params: byId,
  answer: {},
  http: { verb: 'POST', path: '/brokers/{id}/undrain' },
  handler: (context, { id }) => setDrain(context, id, false),
});

const remove = defineWrite({
  name: 'broker.remove',
  summary:
    'Forget a broker that no assignment names; refused, naming shards, while one does; with goneIncarnation, only while that incarnation is down or has left',
  params: { ...byId, goneIncarnation: counterSchema.optional() },
  answer: {},
  http: { verb: 'DELETE', path: '/brokers/{id}' },
  async handler(context, { id, goneIncarnation }) {
    const incarnation = goneIncarnation ?? null;
    const { revision } = await context.propose({ type: 'removeBroker', broker: id, incarnation });
    return { revision };
  },
});

export const BROKER_METHODS = [list, show, drain, undrain, remove];
