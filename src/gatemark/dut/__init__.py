"""Test beds: the ports that the Tester uses, and the gateway between them where the test bed makes one."""

from gatemark.dut.base import GatewayDescription, TestBed
from gatemark.dut.open import open_testbed
from gatemark.dut.recipe import Recipe, built_in_recipes, load_recipe

__all__ = ["GatewayDescription", "Recipe", "TestBed", "built_in_recipes", "load_recipe", "open_testbed"]
