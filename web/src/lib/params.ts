/** Route parameter `$id` as a positive integer. Throws notFound if it is anything else. */
import { notFound } from "@tanstack/react-router";

export const idParam = {
  params: {
    parse: (raw: { id: string }) => {
      const id = Number(raw.id);
      if (!/^\d{1,10}$/.test(raw.id) || id < 1 || id > 2 ** 31 - 1) throw notFound();
      return { id };
    },
    stringify: ({ id }: { id: number }) => ({ id: String(id) }),
  },
};
