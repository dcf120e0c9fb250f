"""Small files in several languages."""

from __future__ import annotations

PYTHON = '''"""Carts and what lies in them."""

import os
from collections.abc import Iterable
from decimal import Decimal

LIMIT = 20


@final
class Cart:
    """What a customer wants.

    It is emptied when paid.
    """

    items: list[Item]

    def total(
        self,
        rate: Decimal,
    ) -> Decimal:
        """The price of all.

        With tax.
        """
        sums = [item.price for item in self.items]
        before = sum(sums)
        if before < 0:
            raise ValueError("negative")
        rounded = before.quantize(Decimal("0.01"))
        return rounded * rate

    def clear(self) -> None:
        # TODO: tell the warehouse
        self.items.clear()
        self.saved = False
        self.notify()
        self.changed = True


async def load(path: str) -> Cart:
    text = open(path).read()
    parts = text.split("\\d")
    cart = Cart()
    cart.items.extend(parts)
    cart.zebra = True
    return cart
'''

TSX = """\
import React from "react";
import { api } from "../lib/api";
import type { User } from "@/types";

/** What the list needs. */
export interface Props {
  users: User[];
  onPick: (user: User) => void;
}

export const UserList: React.FC<Props> = ({ users, onPick }) => {
  const sorted = users.slice();
  sorted.sort((a, b) => a.rank - b.rank);
  const first = sorted[0];
  return <Card user={first} onClick={() => onPick(first)} />;
};

export default class Store extends Base {
  private items: User[] = [];
  add(user: User): void {
    this.items.push(user);
    this.emit("added");
    this.save();
  }
  find = async (id: string) => {
    const found = this.items.find((u) => u.id === id);
    log(found);
    return found;
  };
}

describe("store", () => {
  it("adds", () => {
    const store = new Store();
    store.add(user);
    expect(store.items).toHaveLength(1);
  });
});
"""

GO = """\
package cart

import (
	"errors"
	"fmt"
)

// Cart holds items.
type Cart struct {
	items []Item
	total int
}

type Pricer interface {
	Price(item Item) (int, error)
}

// Total adds up.
func (c *Cart) Total(p Pricer) (int, error) {
	sum := 0
	for _, item := range c.items {
		price, err := p.Price(item)
		if err != nil {
			return 0, fmt.Errorf("price: %w", err)
		}
		sum += price
	}
	return sum, nil
}
"""

RUST = """\
use std::collections::HashMap;
use std::fmt;

/// A cart.
#[derive(Debug)]
pub struct Cart {
    items: Vec<Item>,
    index: HashMap<String, usize>,
}

impl Cart {
    /// Adds up.
    pub fn total(&self) -> Result<u64, Error> {
        let mut sum = 0;
        for item in &self.items {
            sum += item.price()?;
        }
        Ok(sum)
    }
}

mod tests {
    fn empty_cart() {
        let cart = Cart::default();
        assert_eq!(cart.total().unwrap(), 0);
        println!("done");
    }
}
"""

JAVA = """\
package shop;

import java.util.List;
import java.util.Map;

/** A cart. */
public class Cart extends Base {
    private List<Item> items;

    public Cart(List<Item> items) {
        this.items = items;
        this.count = items.size();
        log("made");
    }

    @Override
    public long total(Map<String, Long> prices) {
        long sum = 0;
        for (Item item : items) {
            sum += prices.get(item.name());
        }
        return sum;
    }
}
"""

C = """\
#include <stdio.h>
#include "list.h"

struct node {
    int value;
    struct node *next;
};

/* Pushes a value. */
static int push(struct list *l,
                int value)
{
    struct node *n = malloc(sizeof *n);
    if (!n)
        return -1;
    n->value = value;
    l->head = n;
    return 0;
}

int main(void) {
    struct list l = {0};
    push(&l, 3);
    printf("%d", l.head->value);
    return 0;
}
"""

SHELL = """\
#!/bin/sh
set -e

build() {
    mkdir -p out
    cc -o out/a a.c
    strip out/a
    cp out/a /usr/local/bin/a
    chmod 755 /usr/local/bin/a
    echo built and installed
}

function clean {
    rm -rf out
    rm -f core
    echo cleaned
}
"""
