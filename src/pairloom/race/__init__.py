"""Race: many candidates on one stream, and the mixture of the best of them."""

from pairloom.race.budget import Budget
from pairloom.race.heads import Boosted, Descent, Exact, Head, Steps
from pairloom.race.portfolio import Candidate, OneMap, Portfolio
from pairloom.race.race import Race

__all__ = ["Boosted", "Budget", "Candidate", "Descent", "Exact", "Head", "OneMap", "Portfolio", "Race", "Steps"]
