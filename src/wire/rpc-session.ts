import { z } from 'zod';
import { generationSchema } from './rpc-schemas.ts';
import { defineWrite } from './rpc-types.ts';

/** What applying `openSession` answers. */
export const openedSession = z.object({ session: generationSchema });

const open = defineWrite({
  name: 'session.open',
  summary: 'A session whose requests, numbered upwards, have one effect each however often they are sent',
  params: {},
  answer: { session: generationSchema },
  http: { verb: 'POST', path: '/sessions' },
  async handler(context) {
    const { revision, value } = await context.propose({ type: 'openSession' });
    return { revision, ...openedSession.parse(value) };
  },
});

export const SESSION_METHODS = [open];
